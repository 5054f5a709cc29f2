// Requests as a client writes them: frame(code, fields…). A string field goes with its length, an int64_t or uint32_t as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/protocol.h"

namespace phalanx::store {

inline void put_field(std::string& out, std::string_view text) { put_string(out, text); }
inline void put_field(std::string& out, int64_t number) { put_u64(out, static_cast<uint64_t>(number)); }
inline void put_field(std::string& out, uint32_t number) { put_u32(out, number); }

template <typename... Fields>
std::string frame(int code, const Fields&... fields) {
  std::string out;
  put_u8(out, static_cast<uint8_t>(code));
  (put_field(out, fields), ...);
  return out;
}
// In the modern dialect.
template <typename... Fields>
std::string frame(OpCode code, const Fields&... fields) {
  return frame(static_cast<int>(code), fields...);
}

inline std::string i64(int64_t value) {
  std::string out;
  put_u64(out, static_cast<uint64_t>(value));
  return out;
}
inline std::string sized(std::string_view text) {
  std::string out;
  put_string(out, text);
  return out;
}
inline std::string greeting() { return std::string(kModernGreeting); }

// "03 02 00" → those bytes.
inline std::string bytes_of(std::string_view hex) {
  std::string out;
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 3) out.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

}  // namespace phalanx::store
