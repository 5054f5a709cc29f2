// The ChaCha20 stream cipher (RFC 8439, section 2.4): encrypts and decrypts alike, with XOR. It does not authenticate; what travels needs a
// MAC as well. No branch or table index depends on the key or the bytes.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::base {

inline constexpr size_t kChaChaKeyBytes = 32;
inline constexpr size_t kChaChaNonceBytes = 12;

enum class ChaChaCode { kBest, kPortable };

// XORs `bytes` with the stream of key and nonce from block `counter` on. A key and nonce must never be used for two texts.
// Key and nonce have the lengths above.
void chacha20(std::string& bytes, std::string_view key, std::string_view nonce, uint32_t counter, ChaChaCode code = ChaChaCode::kBest);

}  // namespace phalanx::base
