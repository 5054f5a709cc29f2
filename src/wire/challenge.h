// How two of our processes prove over TCP that both hold the same key, without sending it. Each side contributes a nonce and proves itself
// with an HMAC over both nonces, so a recording proves nothing later, and a listener that does not hold the key learns nothing:
//
//   dialer   → nonce
//   listener → nonce, proof of the listener
//   dialer   → proof of the dialer
//
// The two proofs differ, so no proof can be sent back to its author. Every purpose has a key of its own, derived from the run's token: what
// is proved to the mesh test is worth nothing at the store. Not covered: the bytes after the proof. At the
// store and in the mesh test they are neither encrypted nor authenticated; a node that joins seals them (wire/sealed.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::wire {

inline constexpr size_t kKeyBytes = 32;
inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kProofBytes = 32;

enum class Purpose { kStore, kMesh, kJoin };
// kKeyBytes bytes.
std::string key_for(Purpose purpose, std::string_view run_token);

enum class Side { kDialer, kListener };
// kProofBytes bytes.
std::string proof_of(Side side, std::string_view key, std::string_view dialers_nonce, std::string_view listeners_nonce);
bool proves(std::string_view proof, Side side, std::string_view key, std::string_view dialers_nonce, std::string_view listeners_nonce);

// kNonceBytes bytes nobody can predict (getrandom).
base::Result<std::string> fresh_nonce();

}  // namespace phalanx::wire
