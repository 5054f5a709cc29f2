// A 64-bit fingerprint of values, to compare between ranks (comm::require_same). FNV-1a: it finds mistakes, not attacks.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace phalanx::engine::comm {

class Fingerprint {
 public:
  void add(std::string_view bytes) {
    add(static_cast<int64_t>(bytes.size()));
    mix(bytes.data(), bytes.size());
  }
  void add(int64_t number) { mix(&number, sizeof number); }
  uint64_t value() const { return hash_; }

 private:
  void mix(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3u;
  }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace phalanx::engine::comm
