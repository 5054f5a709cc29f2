# Functions that keep the per-folder build files short. One folder of src/ is one static library.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(phalanx_flags INTERFACE)
target_include_directories(phalanx_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
# Another compiler than the presets' warns of other things, in headers of libraries too.
option(PHALANX_WERROR "Warnings are errors" OFF)
target_compile_options(phalanx_flags INTERFACE -Wall -Wextra $<$<BOOL:${PHALANX_WERROR}>:-Werror> -Wshadow -Wnon-virtual-dtor
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>  # GCC 12 sees ghosts in std::variant and std::optional (GCC bug 80635)
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>  # collects no garbage below 1 GiB: a tenth of its time
  -ffunction-sections -fdata-sections)
target_compile_definitions(phalanx_flags INTERFACE JSON_NOEXCEPTION=1 _GNU_SOURCE=1
  PHALANX_VERSION="${PROJECT_VERSION}")
# Debian's clang links with binutils, which takes several times as long.
get_filename_component(compiler ${CMAKE_CXX_COMPILER} REALPATH)
get_filename_component(compiler_folder ${compiler} DIRECTORY)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND EXISTS ${compiler_folder}/ld.lld)
  set(PHALANX_LLD ON)
  target_link_options(phalanx_flags INTERFACE -fuse-ld=lld)
endif()
if(PHALANX_SANITIZE STREQUAL "address")
  # In a target with the property PHALANX_ADDRESSES_ONLY nothing is watched but addresses.
  target_compile_options(phalanx_flags INTERFACE -fsanitize=address
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PHALANX_ADDRESSES_ONLY>>>:-fsanitize=undefined> -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(phalanx_flags INTERFACE -fsanitize=address,undefined)
elseif(PHALANX_SANITIZE STREQUAL "thread")
  target_compile_options(phalanx_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(phalanx_flags INTERFACE -fsanitize=thread)
endif()
# The launcher's code is compiled without exceptions: errors are values (base/result.h). A release has no names of types for dynamic_cast
# either, which nothing uses: 50 kB, mostly of closures. (Sanitizers need them.)
add_library(phalanx_launcher_flags INTERFACE)
target_link_libraries(phalanx_launcher_flags INTERFACE phalanx_flags)
target_compile_options(phalanx_launcher_flags INTERFACE -fno-exceptions $<$<CONFIG:Release>:-fno-rtti>)
if(PHALANX_FUZZ)
  # libFuzzer follows coverage: without this in the libraries it would guess blindly. In a target with the property PHALANX_NOT_FUZZED there
  # is nothing to follow.
  target_compile_options(phalanx_launcher_flags INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PHALANX_NOT_FUZZED>>>:-fsanitize=fuzzer-no-link>)
endif()

# phalanx_together(TARGET [BYTES [KEEP]]): the target's sources are compiled in groups of about so many bytes of text, each group as one
# translation unit (unity_groups.awk says which and why). Sources with flags of their own, or with SKIP_UNITY_BUILD_INCLUSION, stay
# alone; those with the property PHALANX_CIRCLE (one of PHALANX_CIRCLES) share groups only with others of the same circle. KEEP: a
# source that another target of this folder has put into a group stays in that one. Large groups build the whole tree sooner, small ones
# an edited source. 0 compiles every source alone, as ./x lint does.
set(PHALANX_TOGETHER 150000 CACHE STRING "Bytes of neighbouring sources that are compiled together; 0: none")
set(PHALANX_CIRCLES supervisor)
find_program(AWK NAMES mawk gawk awk)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/unity_groups.awk)
function(phalanx_together target)
  if(NOT PHALANX_TOGETHER OR NOT AWK)
    return()
  endif()
  set(most ${PHALANX_TOGETHER})
  if(ARGC GREATER 1 AND ARGV1 LESS most)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  set(prefix "")
  foreach(source ${sources})
    get_source_file_property(grouped ${source} UNITY_GROUP)
    if(grouped AND "KEEP" IN_LIST ARGN)
      set(prefix "${target}_")  # whose groups must not be this target's
      continue()
    endif()
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(circle ${source} PHALANX_CIRCLE)
    if(NOT circle)
      set(circle "")
    endif()
    if(source MATCHES "\\.cc$" AND NOT alone)
      list(APPEND circle_${circle} ${source})
    endif()
  endforeach()
  foreach(circle "" ${PHALANX_CIRCLES})
    if(NOT circle_${circle})
      continue()
    endif()
    execute_process(COMMAND ${AWK} -v most=${most} -f ${PROJECT_SOURCE_DIR}/cmake/unity_groups.awk ${circle_${circle}}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" lines "${lines}")
    foreach(line ${lines})
      string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
      set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP "${prefix}${circle}${CMAKE_MATCH_1}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes a source that is included for a header, in which another source could see types of an unnamed namespace.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# phalanx_folder(NAME DEP...): every .cc in and below src/NAME becomes phalanx_NAME.
# DEP names folders that NAME may include from; the style test holds includes against the same picture.
function(phalanx_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_library(phalanx_${name} STATIC ${sources})
  phalanx_together(phalanx_${name})
  target_link_libraries(phalanx_${name} PUBLIC phalanx_launcher_flags)
  foreach(dep ${ARGN})
    if(TARGET phalanx_${dep})
      target_link_libraries(phalanx_${name} PUBLIC phalanx_${dep})
    endif()
  endforeach()
endfunction()

# phalanx_small_unwound(NAME...): these folders are compiled for size. They run once per start or per report, and at -O2 most of their
# code is std::string operations expanded in place; what every line of output goes through is compiled for speed, source by source.
function(phalanx_small_unwound)
  foreach(name ${ARGN})
    target_compile_options(phalanx_${name} PRIVATE $<$<CONFIG:Release>:$<IF:$<CXX_COMPILER_ID:Clang>,-Oz,-Os>>)
  endforeach()
endfunction()

# phalanx_not_unwound(NAME...): no exception passes through the code of these folders.
function(phalanx_not_unwound)
  foreach(name ${ARGN})
    target_compile_options(phalanx_${name} PRIVATE $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>)
  endforeach()
endfunction()

# phalanx_small(NAME...): both.
function(phalanx_small)
  phalanx_small_unwound(${ARGN})
  phalanx_not_unwound(${ARGN})
endfunction()

# phalanx_strip(PROGRAM): a release program carries no symbol table; it lies beside it as PROGRAM.debug, where gdb and perf find it.
function(phalanx_strip program)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT CMAKE_OBJCOPY OR NOT CMAKE_STRIP)
    return()
  endif()
  add_custom_command(TARGET ${program} POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:${program}> $<TARGET_FILE:${program}>.debug
    COMMAND ${CMAKE_STRIP} --strip-all --remove-section=.comment $<TARGET_FILE:${program}>
    COMMAND ${CMAKE_OBJCOPY} --add-gnu-debuglink=${program}.debug $<TARGET_FILE:${program}>
    WORKING_DIRECTORY $<TARGET_FILE_DIR:${program}> VERBATIM)
endfunction()

# phalanx_fold(PROGRAM): functions that compiled to the same code stand once in a release program. Only GNU gold (of Debian's binutils) and
# lld do that; without it the program is 2 % larger, nothing else.
find_program(PHALANX_GOLD ld.gold)
function(phalanx_fold program)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  if(PHALANX_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${program} PRIVATE -fuse-ld=gold -Wl,--icf=safe -Wl,-O2)
  elseif(PHALANX_LLD)
    target_link_options(${program} PRIVATE -Wl,--icf=safe -Wl,-O2)
  endif()
endfunction()

# phalanx_not_fuzzed(NAME...): no fuzz target reads bytes with the code of these folders, so none has to follow it.
function(phalanx_not_fuzzed)
  foreach(name ${ARGN})
    set_target_properties(phalanx_${name} PROPERTIES PHALANX_NOT_FUZZED ON)
  endforeach()
endfunction()

# What ./x test runs under sanitizers, to build nothing else there: phalanx_sanitized(TARGET...) adds to the target `sanitized`.
add_custom_target(sanitized)
function(phalanx_sanitized)
  add_dependencies(sanitized ${ARGN})
endfunction()

# phalanx_test_code(TARGET): the target's own sources are tests. They do little work, so the compiler does not optimize them: that would be
# most of their build time. Under Clang's sanitizers they are watched for addresses only, by calls instead of code in place, and no fuzzer
# follows them: they compile in three fifths of the time, and link faster. What they test is watched in full, and optimized, so that
# the checks of inline functions stand in place there.
function(phalanx_test_code target)
  target_compile_options(${target} PRIVATE -O0)
  if(PHALANX_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
    set_target_properties(${target} PROPERTIES PHALANX_ADDRESSES_ONLY ON PHALANX_NOT_FUZZED ON)
  endif()
endfunction()

# phalanx_unit_test(FOLDER): tests/unit/FOLDER/*.cc become one GoogleTest program FOLDER_test.
function(phalanx_unit_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/${folder}/*.cc)
  if(NOT sources OR NOT TARGET phalanx_${folder})
    return()
  endif()
  add_executable(${folder}_test ${sources})
  phalanx_together(${folder}_test)
  phalanx_test_code(${folder}_test)
  phalanx_precompile(tests ${folder}_test)
  target_link_libraries(${folder}_test PRIVATE phalanx_flags phalanx_${folder} GTest::gtest GTest::gtest_main)
  target_include_directories(${folder}_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit)
  target_compile_definitions(${folder}_test PRIVATE PHALANX_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data")
  add_test(NAME unit/${folder} COMMAND ${folder}_test)
  set_tests_properties(unit/${folder} PROPERTIES LABELS unit TIMEOUT 120)
  phalanx_sanitized(${folder}_test)
  # ./x test runs them once, sanitized; beside the engine they are built when asked for by name, or all by `unit_tests`.
  if(PHALANX_TRAIN AND NOT PHALANX_SANITIZE)
    set_target_properties(${folder}_test PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  if(NOT TARGET unit_tests)
    add_custom_target(unit_tests)
  endif()
  add_dependencies(unit_tests ${folder}_test)
endfunction()

# phalanx_fuzz(NAME FOLDER): tests/fuzz/NAME.cc, a libFuzzer target for clang (PHALANX_FUZZ=ON), always under ASan and UBSan.
# It starts from tests/fuzz/corpus/NAME where that exists. `cmake --build build/fuzz --target fuzz` builds them all; `./x test
# fuzz SECONDS` lets them run for longer than ./x test does.
set(PHALANX_FUZZ_SECONDS 10 CACHE STRING "How long each fuzz test runs")
function(phalanx_fuzz name folder)
  if(NOT PHALANX_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}.cc)
  target_link_libraries(fuzz_${name} PRIVATE phalanx_launcher_flags phalanx_${folder})
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzz)
    add_custom_target(fuzz)
  endif()
  add_dependencies(fuzz fuzz_${name})
  phalanx_sanitized(fuzz_${name})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/fuzz_found/${name})
  file(MAKE_DIRECTORY ${found})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  if(NOT EXISTS ${corpus})
    set(corpus)
  endif()
  add_test(NAME fuzz/${name} COMMAND fuzz_${name} -max_total_time=${PHALANX_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048
    -artifact_prefix=${found}/crash- -verbosity=0 ${found} ${corpus})
  math(EXPR timeout "${PHALANX_FUZZ_SECONDS} + 60")
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()
