#include "cluster/payload.h"

#include <fmt/format.h>

#include "base/sha256.h"
#include "os/files.h"

namespace cluster {
namespace {
constexpr size_t kMaxBinaryBytes = 256 << 20;
}  // namespace

base::Result<std::string_view> Payload::header_and_bytes() {
  if (cached_.empty()) {
    TRY_ASSIGN(std::string binary, os::read_file(path_, kMaxBinaryBytes));
    cached_ = fmt::format("{} {}\n", base::sha256_hex(binary), binary.size()) + binary;
  }
  return std::string_view(cached_);
}

}  // namespace cluster
