# The engine as a library for programs outside this tree: `cmake --install build/train --component engine --prefix WHERE`, then in the
# program's CMakeLists.txt find_package(phalanx_engine CONFIG REQUIRED) and target_link_libraries(app phalanx::engine).
#
# One archive, whatever folders there are inside, so that a user's link line has no order to get wrong.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(phalanx_engine STATIC)
foreach(part engine_train engine_parallel engine_checkpoint engine_model engine_data engine_optim engine_comm words wire os base)
  target_sources(phalanx_engine PRIVATE $<TARGET_OBJECTS:phalanx_${part}>)
endforeach()
set_target_properties(phalanx_engine PROPERTIES LINKER_LANGUAGE CXX)
install(TARGETS phalanx_engine ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT engine)

# What a program may include. The headers that these include are installed with them; all others are the engine's own affair.
set(public_headers
  engine/autocast.h
  engine/comm/fingerprint.h engine/comm/group.h engine/comm/make_group.h
  engine/optim/adamw.h engine/optim/grad_scaler.h engine/optim/lion.h engine/optim/norm.h engine/optim/schedule.h engine/optim/sgd.h
  engine/data/batch_share.h engine/data/open_set.h engine/data/plan/sampler.h engine/data/sets.h engine/data/step_loader.h
  engine/data/tokenizer.h engine/data/files/token_writer.h engine/data/windows.h
  engine/model/fused.h engine/model/gpt.h engine/model/recompute.h
  engine/checkpoint/merge.h engine/checkpoint/reader.h engine/checkpoint/safetensors.h engine/checkpoint/saver.h
  engine/checkpoint/shared_folder.h
  engine/parallel/data_parallel.h
  engine/train/cpu.h engine/train/rank.h engine/train/stop.h)
set(todo ${public_headers})
set(headers)
while(todo)
  list(POP_FRONT todo header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/${header} includes REGEX "^#include \"")
  foreach(line ${includes})
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" included "${line}")
    list(APPEND todo ${included})
  endforeach()
endwhile()
set(include_dir ${CMAKE_INSTALL_INCLUDEDIR}/phalanx)
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${include_dir}/${folder} COMPONENT engine)
endforeach()

# Their reference, where Doxygen is installed: `./x api`.
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE api_headers)
list(JOIN api_headers " " api_headers)
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/api/Doxyfile @ONLY)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/phalanx_engine)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/phalanx_engine-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/phalanx_engine-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR include_dir)
# Before 1.0 a minor version may change what headers say.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/phalanx_engine-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/phalanx_engine-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/phalanx_engine-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/find_libtorch.cmake DESTINATION ${package_dir} COMPONENT engine)
