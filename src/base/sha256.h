// SHA-256 (FIPS 180-4), incremental, and HMAC on it (RFC 2104). For content hashes of files we ship and of checkpoints, and for proofs of a
// shared key. No branch or table index depends on the bytes that are hashed. Uses the SHA instructions of x86 where the CPU has them: about
// six times as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::base {

class Sha256 {
 public:
  enum class Code { kBest, kPortable };
  explicit Sha256(Code code = Code::kBest);
  void update(std::string_view bytes);
  // The digest as 64 lower-case hex digits, or as 32 bytes. Call one of them once, last.
  std::string hex();
  std::string bytes();

 private:
  void (*blocks_)(uint32_t* state, const uint8_t* bytes, size_t count);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  size_t pending_size_ = 0;
  uint64_t total_ = 0;  // bytes
};

std::string sha256_hex(std::string_view bytes);
inline constexpr size_t kHmacBytes = 32;
// HMAC-SHA-256: kHmacBytes bytes, for a key of any length.
std::string hmac_sha256(std::string_view key, std::string_view message);
// Takes the same time wherever the difference is. For proofs and keys; the lengths are no secret.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace phalanx::base
