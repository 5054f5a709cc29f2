// The one list of a struct's fields, in the order in which they are written:
//
//   PHALANX_FIELDS(Disk, path, free_bytes);
//
// stands for
//
//   template <typename V> void fields(V& v, Disk& f) { v("path", f.path); v("free_bytes", f.free_bytes); }
//
// JSON (base/json_fields.h) and frames (wire/walk.h) are written and read by it. At most 81 fields.
#pragma once

#define PHALANX_FIELDS(Struct, ...)                                            \
  template <typename V>                                                        \
  void fields([[maybe_unused]] V& v, [[maybe_unused]] Struct& f) {             \
    __VA_OPT__(PHALANX_81_TIMES_(PHALANX_FIELD_(__VA_ARGS__)))                 \
  }                                                                            \
  static_assert(true)

// A macro does not expand itself while it is being expanded: PHALANX_FIELD_ leaves the next call behind unexpanded, and every further
// reading of the text expands one more.
#define PHALANX_FIELD_(name, ...) \
  v(#name, f.name);               \
  __VA_OPT__(PHALANX_NEXT_FIELD_ PHALANX_NO_ARGUMENTS_(__VA_ARGS__))
#define PHALANX_NEXT_FIELD_() PHALANX_FIELD_
#define PHALANX_NO_ARGUMENTS_ ()
#define PHALANX_81_TIMES_(...) PHALANX_27_TIMES_(PHALANX_27_TIMES_(PHALANX_27_TIMES_(__VA_ARGS__)))
#define PHALANX_27_TIMES_(...) PHALANX_9_TIMES_(PHALANX_9_TIMES_(PHALANX_9_TIMES_(__VA_ARGS__)))
#define PHALANX_9_TIMES_(...) PHALANX_3_TIMES_(PHALANX_3_TIMES_(PHALANX_3_TIMES_(__VA_ARGS__)))
#define PHALANX_3_TIMES_(...) PHALANX_ONCE_(PHALANX_ONCE_(PHALANX_ONCE_(__VA_ARGS__)))
#define PHALANX_ONCE_(...) __VA_ARGS__
