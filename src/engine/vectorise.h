// How the loops of *_kernels.cc files are compiled: once per instruction set, chosen when the program starts. Their results do not
// depend on that choice: every element goes through the same IEEE operations (no fused multiply-add, no fast-math; see
// PHALANX_KERNEL_FLAGS in src/engine/CMakeLists.txt), in a vector or alone in a tail.
#pragma once

// GCC only: Clang 14 clones no templates. Not under sanitizers: the clone would be chosen before the sanitizer has started.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PHALANX_MANY_INSTRUCTION_SETS
#endif

#if defined(PHALANX_MANY_INSTRUCTION_SETS)
#define PHALANX_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PHALANX_VECTORISED
#endif
// Of the small functions such loops call: inlined into each clone, they are compiled for it.
#define PHALANX_INLINE inline __attribute__((always_inline))
