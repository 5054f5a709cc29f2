# Debian's libtorch loads 200 libraries that nothing here uses. What is linked to phalanx_torch looks for them among empty ones first: in
# the build folder, and phalanx-train, once installed, in PREFIX/lib/phalanx/empty. DT_RPATH, because DT_RUNPATH does not hold for what a
# library loads. Where others could make such a folder once it is gone, and where its name means something else in a path (":"),
# phalanx-train loads everything.
set(script ${PROJECT_SOURCE_DIR}/tools/make_empty_libraries)
set(empty_libraries ${PROJECT_BINARY_DIR}/empty_libraries)
if(PHALANX_TORCH_ROOT OR PROJECT_BINARY_DIR MATCHES "[:;,$]")
  return()
endif()
add_custom_command(OUTPUT ${empty_libraries}/empty.so VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER} ${script} ${TORCH_LIB_torch_cpu} ${empty_libraries}
  DEPENDS ${script} ${TORCH_LIB_torch_cpu} COMMENT "Making empty libraries")
add_custom_target(phalanx_empty_libraries DEPENDS ${empty_libraries}/empty.so)
add_dependencies(phalanx_torch phalanx_empty_libraries)

# An installation writes its own path over this one, which is therefore longer than it need be.
set(path ${empty_libraries})
string(REPEAT "/." 150 room)
string(APPEND path ${room})
execute_process(COMMAND ${script} --only-ours ${empty_libraries} RESULT_VARIABLE others)
set(look_there LINKER:--disable-new-dtags LINKER:-rpath,${path})
if(NOT others EQUAL 0)
  set(look_there $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,phalanx-train>>:${look_there}>)
endif()
target_link_options(phalanx_torch INTERFACE "${look_there}")

install(CODE "file(REMOVE_RECURSE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/phalanx/empty\")" COMPONENT train)
install(DIRECTORY ${empty_libraries}/ DESTINATION lib/phalanx/empty COMPONENT train PATTERN ld.so.cache EXCLUDE)
function(install_its_path)
  if(NOT others EQUAL 0)
    return()
  endif()
  install(CODE "set(was \"${path}\")\nset(script \"${script}\")" COMPONENT train)
  install(CODE [[
    get_filename_component(is "${CMAKE_INSTALL_PREFIX}/lib/phalanx/empty" ABSOLUTE)
    execute_process(COMMAND ${script} --only-ours ${is} RESULT_VARIABLE others)
    string(LENGTH "${was}" room)
    string(LENGTH "${is}" needed)
    if(NOT others EQUAL 0 OR needed GREATER room OR is MATCHES "[:;,$]")
      set(is /usr/lib/phalanx/empty)  # which only root could make
    endif()
    file(RPATH_CHANGE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/phalanx-train" OLD_RPATH "${was}" NEW_RPATH "${is}")]]
    COMPONENT train)
endfunction()
