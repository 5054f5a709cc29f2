# The headers of the standard library, fmt, JSON and GoogleTest take a third of the time in which most sources compile. They are compiled
# once for each set of flags, and the sources with these flags begin with them. Whether a source includes what it uses is shown by
# ./x lint, which compiles each alone and without these.

# phalanx_precompiled(KIND): makes phalanx_headers_KIND, which holds them. Its flags are to be those of the targets that take them.
function(phalanx_precompiled kind)
  add_library(phalanx_headers_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled_headers.cc)
  target_link_libraries(phalanx_headers_${kind} PRIVATE phalanx_launcher_flags)
  target_precompile_headers(phalanx_headers_${kind} PRIVATE <algorithm> <array> <chrono> <cstdint> <functional> <map> <memory> <optional>
    <set> <span> <string> <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
endfunction()

# phalanx_precompile(KIND TARGET...): these targets take them. Of their sources, those with flags of their own have SKIP_PRECOMPILE_HEADERS.
function(phalanx_precompile kind)
  if(NOT PHALANX_TOGETHER)
    return()
  endif()
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM phalanx_headers_${kind})
  endforeach()
endfunction()

phalanx_precompiled(launcher)
phalanx_precompiled(small)
phalanx_small(headers_small)
phalanx_precompiled(small_unwound)
phalanx_small_unwound(headers_small_unwound)
phalanx_precompiled(unfuzzed)
phalanx_not_fuzzed(headers_unfuzzed)
# phalanx_precompile_folders(NAME...): each with the kind that its flags ask for.
function(phalanx_precompile_folders)
  foreach(name ${ARGN})
    get_target_property(unfuzzed phalanx_${name} PHALANX_NOT_FUZZED)
    if(PHALANX_FUZZ AND unfuzzed)
      phalanx_precompile(unfuzzed phalanx_${name})
    elseif(name IN_LIST PHALANX_SMALL)
      phalanx_precompile(small phalanx_${name})
    elseif(name IN_LIST PHALANX_SMALL_UNWOUND)
      phalanx_precompile(small_unwound phalanx_${name})
    elseif(CMAKE_BUILD_TYPE STREQUAL "Release" AND name IN_LIST PHALANX_NOT_UNWOUND)
      continue()  # too few sources for headers of their own
    else()
      phalanx_precompile(launcher phalanx_${name})
    endif()
  endforeach()
endfunction()
