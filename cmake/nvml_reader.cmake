# The helper that asks NVML (src/machine/gpu/nvml_reader.c), built apart from the launcher and embedded in it as bytes.
#
# It is linked against stubs of libc.so.6 and libdl.so.2 that define only what it uses, at the oldest symbol version there is, so
# that it runs with every glibc since 2.2.5 (x86-64) or 2.17 (aarch64). An architecture it has no entry point for embeds nothing:
# nvidia-smi and /proc are asked there.
set(reader_folder ${CMAKE_CURRENT_BINARY_DIR}/nvml_reader)
set(reader ${reader_folder}/reader)
file(MAKE_DIRECTORY ${reader_folder})
set(reader_flags -x c -std=gnu11 -O2 -fPIC -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE
  -Wno-deprecated-non-prototype)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(REMOVE_ITEM reader_flags -Wno-deprecated-non-prototype)
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  set(symbol_version GLIBC_2.2.5)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(symbol_version GLIBC_2.17)
  endif()
  function(reader_stub name soname)
    set(source "")
    set(symbols "")
    foreach(symbol ${ARGN})
      string(APPEND source "void ${symbol}(void) {}\n")
      string(APPEND symbols " ${symbol};")
    endforeach()
    file(CONFIGURE OUTPUT ${reader_folder}/${name}.c CONTENT "${source}")
    file(CONFIGURE OUTPUT ${reader_folder}/${name}.map CONTENT "${symbol_version} { global:${symbols} local: *; };\n")
    add_custom_command(OUTPUT ${reader_folder}/${name}.so
      COMMAND ${CMAKE_CXX_COMPILER} -x c -w -fno-builtin -fPIC -shared -nostdlib -Wl,-soname,${soname}
        -Wl,--version-script=${name}.map ${name}.c -o ${name}.so
      DEPENDS ${reader_folder}/${name}.c ${reader_folder}/${name}.map
      WORKING_DIRECTORY ${reader_folder} VERBATIM)
  endfunction()
  reader_stub(stub_libc libc.so.6 __libc_start_main _exit write snprintf memset memcpy)
  reader_stub(stub_libdl libdl.so.2 dlopen dlsym dlerror)
  add_custom_command(OUTPUT ${reader}
    COMMAND ${CMAKE_CXX_COMPILER} ${reader_flags} -pie -nostdlib -nostartfiles -s -Wl,--build-id=none -Wl,-z,noexecstack
      ${CMAKE_CURRENT_SOURCE_DIR}/machine/gpu/nvml_reader.c -x none stub_libc.so stub_libdl.so -o ${reader}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/machine/gpu/nvml_reader.c ${reader_folder}/stub_libc.so ${reader_folder}/stub_libdl.so
    WORKING_DIRECTORY ${reader_folder} VERBATIM)
else()
  add_custom_command(OUTPUT ${reader} COMMAND ${CMAKE_COMMAND} -E touch ${reader})
endif()

add_custom_target(nvml_reader DEPENDS ${reader})
add_dependencies(phalanx_machine nvml_reader)
set_source_files_properties(machine/gpu/nvml_image.cc PROPERTIES
  OBJECT_DEPENDS ${reader} COMPILE_DEFINITIONS PHALANX_NVML_READER="${reader}")
