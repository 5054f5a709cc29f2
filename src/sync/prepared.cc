#include "sync/prepared.h"

#include "base/try.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

constexpr std::string_view kMagic = "phalanx prepared environment";
constexpr uint32_t kVersion = 1;
constexpr size_t kLeastAside = 4 + kDigestBytes + 8;

bool is_place(const std::string& path) { return path.starts_with('/') && path.size() > 1 && path.size() <= kMostPathBytes; }

}  // namespace

std::string encode(const Prepared& prepared) {
  std::string bytes;
  wire::Encoder out(bytes);
  out.str(kMagic);
  out.u32(kVersion);
  out.str(prepared.root);
  out.str(prepared.to);
  out.u32(prepared.mode);
  out.str(encode(prepared.manifest));
  out.u32(static_cast<uint32_t>(prepared.aside.size()));
  for (const auto& [digest, at] : prepared.aside) {
    out.str(digest);
    out.u64(at);
  }
  return bytes;
}

base::Result<Prepared> decode_prepared(std::string_view bytes) {
  const base::Error malformed = base::fail(base::ErrorKind::kInternal, "phalanx-env gave a malformed list of an environment")
                                    .with_hint("install phalanx and phalanx-env of the same package");
  wire::Decoder in(bytes);
  if (in.view() != kMagic || in.u32() != kVersion) return malformed;
  Prepared prepared;
  prepared.root = in.str();
  prepared.to = in.str();
  prepared.mode = in.u32();
  const std::string_view list = in.view();
  const uint32_t count = in.count(kLeastAside);
  for (uint32_t i = 0; i < count && in.good(); ++i) {
    std::string digest = in.str();
    const uint64_t at = in.u64();
    if (digest.size() != kDigestBytes || at > kMostCopyBytes) return malformed;
    prepared.aside.emplace(std::move(digest), at);
  }
  if (!in.done() || !is_place(prepared.root) || !is_place(prepared.to) || (prepared.mode & ~kModes) != 0) return malformed;
  TRY_ASSIGN(prepared.manifest, decode(list));
  if (!prepared.manifest.with_modes) return malformed;
  return prepared;
}

}  // namespace phalanx::sync
