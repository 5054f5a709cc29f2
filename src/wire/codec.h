// The bytes inside a frame: little-endian integers and length-prefixed strings, in the order the message names them.
// A Decoder never reads past its input and never throws: the first bad read makes good() false and every later value
// zero or empty, so a message is decoded straight through and checked once at its end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

static_assert(std::endian::native == std::endian::little, "the wire format is written by memcpy");

namespace phalanx::wire {

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  void u8(uint8_t v) { raw(&v, 1); }
  void u32(uint32_t v) { raw(&v, 4); }
  void u64(uint64_t v) { raw(&v, 8); }
  void i64(int64_t v) { raw(&v, 8); }
  void flag(bool v) { u8(v ? 1 : 0); }
  void str(std::string_view v) {
    u32(static_cast<uint32_t>(v.size()));
    raw(v.data(), v.size());
  }
  void strs(const std::vector<std::string>& v) {
    u32(static_cast<uint32_t>(v.size()));
    for (const auto& s : v) str(s);
  }

 private:
  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}
  uint8_t u8() { return number<uint8_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int64_t i64() { return number<int64_t>(); }
  bool flag() { return u8() != 0; }
  std::string str() { return std::string(view()); }
  std::string_view view() {
    size_t size = u32();
    if (size > in_.size()) {
      good_ = false;
      in_ = {};
      return {};
    }
    std::string_view v = in_.substr(0, size);
    in_.remove_prefix(size);
    return v;
  }
  // A count of things that each take at least `least` bytes; refuses what cannot fit in the rest of the input.
  uint32_t count(size_t least) {
    uint32_t n = u32();
    if (n > in_.size() / (least ? least : 1)) {
      good_ = false;
      in_ = {};
      return 0;
    }
    return n;
  }
  std::vector<std::string> strs() {
    std::vector<std::string> v(count(4));
    for (auto& s : v) s = str();
    return v;
  }
  // All read, nothing left over.
  bool done() const { return good_ && in_.empty(); }
  bool good() const { return good_; }
  void refuse() {
    good_ = false;
    in_ = {};
  }

 private:
  template <typename T>
  T number() {
    T v{};
    if (in_.size() < sizeof(T)) {
      good_ = false;
      in_ = {};
      return v;
    }
    std::memcpy(&v, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return v;
  }
  std::string_view in_;
  bool good_ = true;
};

}  // namespace phalanx::wire
