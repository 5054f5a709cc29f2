# Programs on Debian's libtorch start without the 200 libraries that it loads and nothing here uses: a folder of empty ones is searched
# first, in the build folder or, once installed, PREFIX/lib/phalanx/empty. By DT_RPATH: DT_RUNPATH does not apply to what a library loads.
# phalanx-train loads everything where another user could create that folder, and where its name means something else in a path (":").
# Included after the rule that installs phalanx-train, whose path it rewrites.
if(PHALANX_TORCH_ROOT OR PROJECT_BINARY_DIR MATCHES "[:;,$]")
  return()
endif()
set(empty_libraries ${PROJECT_BINARY_DIR}/empty_libraries)
set(make_empty_libraries ${PROJECT_SOURCE_DIR}/tools/make_empty_libraries)
add_custom_command(OUTPUT ${empty_libraries}/empty.so VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER} ${make_empty_libraries} ${TORCH_LIB_torch_cpu} ${empty_libraries}
  DEPENDS ${make_empty_libraries} ${TORCH_LIB_torch_cpu} COMMENT "Making empty libraries")
add_custom_target(phalanx_empty_libraries DEPENDS ${empty_libraries}/empty.so)
add_dependencies(phalanx_torch phalanx_empty_libraries)

# Padded, so that an installation has room to write its own path over it.
string(REPEAT "/." 150 padding)
set(empty_libraries_path ${empty_libraries}${padding})
set(search_there LINKER:--disable-new-dtags LINKER:-rpath,${empty_libraries_path})
execute_process(COMMAND ${make_empty_libraries} --only-ours ${empty_libraries} RESULT_VARIABLE not_only_ours)
if(not_only_ours)
  set(search_there $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,phalanx-train>>:${search_there}>)
endif()
target_link_options(phalanx_torch INTERFACE "${search_there}")

install(CODE "file(REMOVE_RECURSE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/phalanx/empty\")" COMPONENT train)
install(DIRECTORY ${empty_libraries}/ DESTINATION lib/phalanx/empty COMPONENT train PATTERN ld.so.cache EXCLUDE)
if(NOT not_only_ours)
  install(CODE "set(built \"${empty_libraries_path}\")\nset(make_empty_libraries \"${make_empty_libraries}\")" COMPONENT train)
  install(CODE [[
    get_filename_component(installed "${CMAKE_INSTALL_PREFIX}/lib/phalanx/empty" ABSOLUTE)
    execute_process(COMMAND ${make_empty_libraries} --only-ours "${installed}" RESULT_VARIABLE not_only_ours)
    string(LENGTH "${built}" room)
    string(LENGTH "${installed}" needed)
    if(not_only_ours OR needed GREATER room OR installed MATCHES "[:$]")
      set(installed /usr/lib/phalanx/empty)  # only root could create it
    endif()
    file(RPATH_CHANGE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/phalanx-train" OLD_RPATH "${built}" NEW_RPATH "${installed}")]]
    COMPONENT train)
endif()
