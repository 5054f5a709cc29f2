// The memory of a Python process, put together: one thread in two functions, of any layout. For versions that cannot be installed, and as
// seeds of what is broken on purpose.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "machine/python/interpreter.h"

namespace phalanx::python_image {

// struct _Py_DebugOffsets of 3.14, field by field: Include/internal/pycore_debug_offsets.h.
struct Offsets314 {
  char cookie[8];
  uint64_t version, free_threaded;
  uint64_t runtime_size, finalizing, interpreters_head;
  uint64_t interpreter_size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins, ceval_gil, gil_runtime_state,
      gil_enabled, gil_locked, gil_holder, code_object_generation, tlbc_generation;
  uint64_t thread_size, prev, thread_next, interp, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  uint64_t frame_size, previous, executable, instr_ptr, localsplus, owner, stackpointer, tlbc_index;
  uint64_t code_size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames, localspluskinds, co_code_adaptive,
      co_tlbc;
  uint64_t object_size, ob_type;
  uint64_t type_size, tp_name, tp_repr, tp_flags;
  uint64_t tuple_size, tuple_item, tuple_ob_size, list_size, list_item, list_ob_size, set_size, set_used, set_table, set_mask;
  uint64_t dict_size, ma_keys, ma_values, float_size, ob_fval, long_size, lv_tag, ob_digit;
  uint64_t bytes_size, bytes_ob_size, ob_sval;
  uint64_t unicode_size, state, length, asciiobject_size;
};

// As a build with these options would say, with offsets that no build has: only what it says may be used.
inline Offsets314 offsets_of_314(bool free_threaded) {
  Offsets314 o{};
  std::memcpy(o.cookie, "xdebugpy", 8);
  o.version = 0x030e00f0;
  o.free_threaded = free_threaded ? 1 : 0;
  o.interpreters_head = 840;
  o.next = 48;
  o.threads_head = 96;
  o.thread_next = 16;
  o.current_frame = 80;
  o.thread_id = 160;
  o.native_thread_id = 168;
  o.previous = 8;
  o.executable = 0;
  o.instr_ptr = 56;
  o.owner = 78;
  o.tlbc_index = 72;
  o.filename = 128;
  o.name = 136;
  o.linetable = 152;
  o.firstlineno = 84;
  o.co_code_adaptive = 216;
  o.co_tlbc = 200;
  o.ob_type = free_threaded ? 24 : 8;
  o.tp_name = 40;
  o.bytes_ob_size = 32;
  o.ob_sval = 48;
  o.state = 48;
  o.length = 32;
  o.asciiobject_size = 56;
  return o;
}

class Image : public machine::Memory {
 public:
  static constexpr uint64_t kBase = 0x100000, kSize = 16 << 10;
  static constexpr int64_t kTid = 4711;

  explicit Image(const machine::PythonLayout& layout) : l_(layout), bytes_(kSize, '\0') { build(); }
  explicit Image(std::string bytes) : bytes_(std::move(bytes)) {}

  bool read(uint64_t address, void* into, size_t size) override {
    if (address < kBase || size > bytes_.size() || address - kBase > bytes_.size() - size) return false;
    std::memcpy(into, bytes_.data() + (address - kBase), size);
    return true;
  }
  template <typename T>
  void set(uint64_t address, T value) {
    std::memcpy(bytes_.data() + (address - kBase), &value, sizeof(value));
  }
  machine::Interpreter interpreter() const { return {kBase, l_}; }
  std::string& bytes() { return bytes_; }
  uint64_t inner = 0, outer = 0, shim = 0, thread = 0, code = 0, name = 0, lines = 0;  // addresses

 private:
  uint64_t take(size_t size) {
    uint64_t at = kBase + used_;
    used_ += (size + 15) / 16 * 16;
    return at;
  }
  uint64_t plain(std::string_view text) {
    uint64_t at = take(text.size() + 1);
    std::memcpy(bytes_.data() + (at - kBase), text.data(), text.size());
    return at;
  }
  uint64_t type(std::string_view called) {
    uint64_t at = take(64);
    set(at + l_.type_name, plain(called));
    return at;
  }
  uint64_t text(std::string_view words) {
    uint64_t at = take(l_.ascii_data + words.size() + 1);
    set(at + l_.type, str_);
    set(at + l_.text_length, uint64_t{words.size()});
    uint32_t kind_compact_ascii = 1 | 1 << 3 | 1 << 4;
    set(at + l_.text_state, l_.free_threaded ? kind_compact_ascii << 8 | 1 : kind_compact_ascii << 2 | 1);
    std::memcpy(bytes_.data() + (at + l_.ascii_data - kBase), words.data(), words.size());
    return at;
  }
  uint64_t function(std::string_view name_of_it, std::string_view table) {
    uint64_t at = take(512);
    set(at + l_.type, code_type_);
    set(at + l_.code_file, text("/data/train.py"));
    set(at + l_.code_name, name = text(name_of_it));
    lines = take(l_.bytes_data + table.size());
    set(lines + l_.type, bytes_type_);
    set(lines + l_.bytes_size, uint64_t{table.size()});
    std::memcpy(bytes_.data() + (lines + l_.bytes_data - kBase), table.data(), table.size());
    set(at + l_.code_lines, lines);
    set(at + l_.code_first_line, int32_t{10});
    return at;
  }
  // At the fourth byte of the code, which is on the third line.
  void frame(uint64_t at, uint64_t of, uint64_t previous) {
    set(at + l_.frame_previous, previous);
    set(at + l_.frame_code, l_.version >= 0x030e ? of | 1 : of);
    if (l_.version >= machine::kPointsIntoCode) set(at + l_.frame_place, of + l_.code_start + 4);
    else set(at + l_.frame_place, int32_t{l_.version < machine::kPlacesAreInstructions ? 4 : 2});
    if (l_.version < machine::kPlacesAreInstructions) set(at + l_.frame_state, uint8_t{1});
  }
  void build() {
    uint64_t runtime = take(2048), interpreter = take(8192);
    thread = take(512);
    str_ = type("str");
    code_type_ = type("code");
    bytes_type_ = type("bytes");
    set(runtime + l_.interpreters_head, interpreter);
    set(interpreter + l_.threads_head, thread);
    set(thread + l_.native_id, uint64_t{kTid});
    // Lines 10, 11 and 12 of two bytes each: as lnotab, as ranges, as locations of one line (10: none further, 11: one further).
    std::string table = l_.lines == machine::LineTable::kLnotab   ? std::string("\x02\x01\x02\x01", 4)
                        : l_.lines == machine::LineTable::kRanges ? std::string("\x02\x00\x02\x01\x02\x01", 6)
                                                                  : std::string("\xd0\x01\x02\xd8\x01\x02\xd8\x01\x02", 9);
    inner = take(256);
    outer = take(256);
    shim = take(256);
    uint64_t train = function("train", table);
    code = function("step", table);
    frame(inner, code, shim);
    frame(shim, kBase, outer);  // an entry from C: its code is none
    if (l_.version < 0x030c) set(inner + l_.frame_previous, outer);
    else set(shim + l_.frame_state, uint8_t{3});
    frame(outer, train, 0);
    uint64_t first = inner;
    if (l_.cframe_frame) {
      first = take(64);
      set(first + *l_.cframe_frame, inner);
    }
    set(thread + l_.thread_frame, first);
  }

  machine::PythonLayout l_;
  std::string bytes_;
  size_t used_ = 0;
  uint64_t str_ = 0, code_type_ = 0, bytes_type_ = 0;
};

}  // namespace phalanx::python_image
