// What a host decodes of a list of files, whole and as the lists it has kept; what passes is written again, and must be the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sync/ignore.h"
#include "sync/manifest.h"
#include "sync/prepared.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  base::Result<sync::Manifest> manifest = sync::decode(bytes);
  if (manifest.ok()) {
    if (sync::encode(*manifest) != bytes) std::abort();
    for (const sync::Entry& entry : manifest->entries)
      if (entry.path.starts_with('/') || ("/" + entry.path + "/").find("/../") != std::string::npos) std::abort();
  }
  // The bytes as changes of a list, and as a list before them.
  static const base::Result<sync::Listing> before = sync::Listing::read(
      sync::encode({{{"a", sync::Kind::kFolder}, {"a/l", sync::Kind::kLink, 0, 0, "x"}, {"b", sync::Kind::kLink, 0, 0, "a/l"}}}));
  if (before.ok()) (void)sync::with_changes(*before, bytes);
  if (const base::Result<sync::Listing> list = sync::Listing::read(std::string(bytes)); list.ok() && before.ok())
    for (const auto& [from, to] : {std::pair(&*before, &*list), std::pair(&*list, &*before)})
      if (const base::Result<std::string> made = sync::with_changes(*from, sync::changes_between(*from, *to));
          !made.ok() || *made != to->bytes())
        std::abort();
  if (const base::Result<sync::Prepared> prepared = sync::decode_prepared(bytes); prepared.ok())
    if (prepared->root.front() != '/' || prepared->to.front() != '/' || !prepared->manifest.with_modes) std::abort();
  sync::IgnoreRules rules;
  const size_t cut = bytes.find('\0');
  rules.add("", bytes.substr(0, cut));
  if (cut != std::string_view::npos && cut + 1 < size) (void)rules.leaves_out(bytes.substr(cut + 1), (data[0] & 1) != 0);
  return 0;
}
