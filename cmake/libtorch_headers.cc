// Makes the precompiled headers of libtorch: libtorch_headers.h for GCC, clang_with_libtorch.h for Clang.
