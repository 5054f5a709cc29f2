// SHA-256 (FIPS 180-4), incremental. For content hashes of files we ship and of checkpoints; not tuned for secrets. Uses the SHA
// instructions of x86 where the CPU has them: about six times as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace base {

class Sha256 {
 public:
  enum class Code { kBest, kPortable };
  explicit Sha256(Code code = Code::kBest);
  void update(std::string_view bytes);
  // The digest as 64 lower-case hex digits. Call once, last.
  std::string hex();

 private:
  void (*blocks_)(uint32_t* state, const uint8_t* bytes, size_t count);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  size_t pending_size_ = 0;
  uint64_t total_ = 0;  // bytes
};

std::string sha256_hex(std::string_view bytes);

}  // namespace base
