#include "wire/challenge.h"

#include <sys/random.h>

#include "base/sha256.h"

namespace phalanx::wire {
namespace {

using namespace std::string_view_literals;

// A zero byte ends each label, so no label continues in what follows it.
constexpr std::string_view kStoreLabel = "phalanx store key 1\0"sv, kMeshLabel = "phalanx mesh key 1\0"sv,
                           kJoinLabel = "phalanx join key 1\0"sv;
constexpr std::string_view kDialerLabel = "phalanx dialer 1\0"sv, kListenerLabel = "phalanx listener 1\0"sv;

}  // namespace

std::string key_for(Purpose purpose, std::string_view run_token) {
  const std::string_view label = purpose == Purpose::kStore ? kStoreLabel : purpose == Purpose::kMesh ? kMeshLabel : kJoinLabel;
  return base::hmac_sha256(run_token, label);
}

std::string proof_of(Side side, std::string_view key, std::string_view dialers_nonce, std::string_view listeners_nonce) {
  std::string message(side == Side::kDialer ? kDialerLabel : kListenerLabel);
  message += dialers_nonce;  // both of a fixed length
  message += listeners_nonce;
  return base::hmac_sha256(key, message);
}

bool proves(std::string_view proof, Side side, std::string_view key, std::string_view dialers_nonce, std::string_view listeners_nonce) {
  return key.size() == kKeyBytes && base::equal_secrets(proof, proof_of(side, key, dialers_nonce, listeners_nonce));
}

base::Result<std::string> fresh_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    return base::system_error("getrandom", std::to_string(kNonceBytes) + " bytes");
  return nonce;
}

}  // namespace phalanx::wire
