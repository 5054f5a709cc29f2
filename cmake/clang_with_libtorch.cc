// Makes the precompiled header of clang_with_libtorch.h.
