# The agent's program, which deployment sends to hosts: built by itself, stripped, compressed, and embedded in the launcher.
add_executable(phalanx-agent main_agent.cc)
target_link_libraries(phalanx-agent PRIVATE phalanx_agent)
target_link_options(phalanx-agent PRIVATE -Wl,--gc-sections -Wl,--build-id=sha1)
set_target_properties(phalanx-agent PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
if(PHALANX_STATIC AND NOT PHALANX_SANITIZE)
  target_link_options(phalanx-agent PRIVATE -static)
endif()

add_executable(pack_agent ${PROJECT_SOURCE_DIR}/tools/pack_agent/main.cc)
target_link_libraries(pack_agent PRIVATE phalanx_launcher_flags phalanx_os phalanx_base)
set_target_properties(pack_agent PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# A release has the time to make it small. Sanitizers want the symbols for what they report.
set(agent_level fast)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(agent_level small)
endif()
set(agent_image ${CMAKE_CURRENT_BINARY_DIR}/agent_image)
if(PHALANX_SANITIZE OR NOT CMAKE_STRIP)
  set(agent_strip_command ${CMAKE_COMMAND} -E copy $<TARGET_FILE:phalanx-agent> ${agent_image}.program)
else()
  set(agent_strip_command ${CMAKE_STRIP} --strip-all --remove-section=.comment -o ${agent_image}.program $<TARGET_FILE:phalanx-agent>)
endif()
add_custom_command(OUTPUT ${agent_image}.program ${agent_image}.gz ${agent_image}.inc
  COMMAND ${agent_strip_command}
  COMMAND pack_agent ${agent_image}.program ${agent_level} ${agent_image}.gz ${agent_image}.inc
  DEPENDS phalanx-agent pack_agent VERBATIM)
add_custom_target(agent_image DEPENDS ${agent_image}.gz ${agent_image}.inc)
add_dependencies(phalanx_cli agent_image)
set_source_files_properties(cli/agent_image.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  OBJECT_DEPENDS "${agent_image}.gz;${agent_image}.inc"
  COMPILE_DEFINITIONS "PHALANX_AGENT_IMAGE=\"${agent_image}\";PHALANX_AGENT_FACTS=\"${agent_image}.inc\"")
