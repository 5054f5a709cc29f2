# Finds libtorch and makes the target phalanx_torch, for the engine's own build and, installed beside its package, for programs that
# use the engine. Sets phalanx_torch_missing (empty: all is there), phalanx_torch_version and phalanx_torch_offers.
#
# libtorch is found by its headers and libraries, not by its own CMake package: that one wants build tools of libtorch's own (gflags, glog,
# protobuf; a CUDA toolkit with nvcc for a CUDA build) which a user of the library does not need. Debian's libtorch-dev is found by
# itself; for another one: -DPHALANX_TORCH_ROOT=<folder with include/ and lib/>, which for a Python wheel is the folder
# of the `torch` package. Beside that package lie the wheels of CUDA and NCCL that it loads: they come before the system's, because a
# program that loads another NCCL than its libtorch was made for mixes two of them.
set(PHALANX_TORCH_ROOT "${PHALANX_TORCH_ROOT_DEFAULT}" CACHE PATH "libtorch to build against; empty for the system's")
set(torch_hints ${PHALANX_TORCH_ROOT})
set(torch_wheels)
if(PHALANX_TORCH_ROOT)
  file(GLOB torch_wheels ${PHALANX_TORCH_ROOT}/../nvidia/*)
endif()
find_path(TORCH_INCLUDE ATen/ATen.h HINTS ${torch_hints} PATH_SUFFIXES include)
foreach(lib torch torch_cpu c10)
  find_library(TORCH_LIB_${lib} ${lib} HINTS ${torch_hints} PATH_SUFFIXES lib)
endforeach()
# Present with a CUDA libtorch. Wheels have no link without a version.
foreach(lib torch_cuda c10_cuda nccl cudart)
  find_library(TORCH_LIB_${lib} NAMES ${lib} lib${lib}.so.13 lib${lib}.so.12 lib${lib}.so.2 NAMES_PER_DIR
    HINTS ${torch_hints} ${torch_wheels} ENV NCCL_HOME ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES lib lib64)
endforeach()
find_path(GLOO_INCLUDE gloo/algorithm.h HINTS ${torch_hints} PATH_SUFFIXES include)
find_path(NCCL_INCLUDE nccl.h HINTS ${torch_hints} ${torch_wheels} ENV NCCL_HOME PATH_SUFFIXES include)
# Some wheels have a part of CUDA's headers each: what is wanted is a folder with all.
function(has_all_of_cuda result folder)
  foreach(header cuda_runtime_api.h crt/host_config.h cublas_v2.h cusparse.h cusolverDn.h)
    if(NOT EXISTS ${folder}/${header})
      set(${result} FALSE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
find_path(CUDA_INCLUDE cuda_runtime_api.h VALIDATOR has_all_of_cuda
  HINTS ${torch_wheels} ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES include)
find_path(FMT_INCLUDE fmt/format.h)

set(phalanx_torch_missing)
foreach(wanted TORCH_INCLUDE TORCH_LIB_torch TORCH_LIB_torch_cpu TORCH_LIB_c10)
  if(NOT ${wanted})
    list(APPEND phalanx_torch_missing ${wanted})
  endif()
endforeach()
if(phalanx_torch_missing)
  return()
endif()

# Since 2.9 the version lies with the headers that need no library.
set(phalanx_torch_version)
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS ${TORCH_INCLUDE}/${header})
    file(STRINGS ${TORCH_INCLUDE}/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
    string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
    list(JOIN numbers "." phalanx_torch_version)
    break()
  endif()
endforeach()

add_library(phalanx_torch INTERFACE)
target_include_directories(phalanx_torch SYSTEM INTERFACE ${TORCH_INCLUDE}/torch/csrc/api/include)
# libtorch is compiled with NDEBUG, and some of its headers' classes (at::RecordFunction) are laid out otherwise without.
target_compile_definitions(phalanx_torch INTERFACE NDEBUG)
if(PHALANX_TORCH_ROOT)
  # Some libtorchs bring another fmt than the one that the rest of the program is compiled with: the program's comes first.
  if(FMT_INCLUDE AND EXISTS ${TORCH_INCLUDE}/fmt)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fmt_first)
    file(CREATE_LINK ${FMT_INCLUDE}/fmt ${CMAKE_CURRENT_BINARY_DIR}/fmt_first/fmt SYMBOLIC)
    target_include_directories(phalanx_torch SYSTEM BEFORE INTERFACE ${CMAKE_CURRENT_BINARY_DIR}/fmt_first)
  endif()
  target_include_directories(phalanx_torch SYSTEM INTERFACE ${TORCH_INCLUDE})
endif()
# Operators register themselves when their library is loaded; nothing may drop it as unused.
target_link_libraries(phalanx_torch INTERFACE -Wl,--no-as-needed ${TORCH_LIB_torch} ${TORCH_LIB_torch_cpu} ${TORCH_LIB_c10})
set(phalanx_torch_offers)
if(GLOO_INCLUDE)
  list(APPEND phalanx_torch_offers PHALANX_GLOO)
endif()
if(TORCH_LIB_torch_cuda AND TORCH_LIB_nccl AND NCCL_INCLUDE AND CUDA_INCLUDE)
  list(APPEND phalanx_torch_offers USE_C10D_NCCL)
  target_include_directories(phalanx_torch SYSTEM INTERFACE ${NCCL_INCLUDE} ${CUDA_INCLUDE})
  target_link_libraries(phalanx_torch INTERFACE ${TORCH_LIB_torch_cuda} ${TORCH_LIB_c10_cuda} ${TORCH_LIB_nccl} ${TORCH_LIB_cudart})
endif()
target_compile_definitions(phalanx_torch INTERFACE ${phalanx_torch_offers})
target_link_libraries(phalanx_torch INTERFACE -Wl,--as-needed ${CMAKE_DL_LIBS})
