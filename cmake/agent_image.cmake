# The agent's program, which deployment sends to hosts: built by itself, stripped, compressed, and embedded in the launcher.
add_executable(pack_agent ${PROJECT_SOURCE_DIR}/tools/pack_agent/main.cc)
target_link_libraries(pack_agent PRIVATE phalanx_os phalanx_base)
set_target_properties(pack_agent PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# phalanx_agent_image(PROGRAM IMAGE): a program from src/main_agent.cc, and IMAGE.program, .gz and .inc made of it. cli/agent_image.cc,
# which embeds them, is compiled accordingly where this is called.
function(phalanx_agent_image program image)
  add_executable(${program} ${PROJECT_SOURCE_DIR}/src/main_agent.cc)
  target_link_libraries(${program} PRIVATE phalanx_agent)
  target_link_options(${program} PRIVATE -Wl,--gc-sections -Wl,--build-id=sha1)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  # A release has the time to make it small. Sanitizers want the symbols for what they report.
  set(level fast)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(level small)
  endif()
  if(PHALANX_SANITIZE OR NOT CMAKE_STRIP)
    set(strip ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${program}> ${image}.program)
  else()
    set(strip ${CMAKE_STRIP} --strip-all --remove-section=.comment -o ${image}.program $<TARGET_FILE:${program}>)
  endif()
  add_custom_command(OUTPUT ${image}.program ${image}.gz ${image}.inc
    COMMAND ${strip}
    COMMAND pack_agent ${image}.program ${level} ${image}.gz ${image}.inc
    DEPENDS ${program} pack_agent VERBATIM)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cli/agent_image.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    OBJECT_DEPENDS "${image}.gz;${image}.inc"
    COMPILE_DEFINITIONS "PHALANX_AGENT_IMAGE=\"${image}\";PHALANX_AGENT_FACTS=\"${image}.inc\"")
endfunction()
