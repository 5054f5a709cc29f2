// What changed from one list of files to the next.
#include <fmt/format.h>

#include "sync/manifest.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

constexpr size_t kHeadBytes = 8;

base::Error malformed(std::string_view why) {
  return base::fail(base::ErrorKind::kInternal, fmt::format("malformed list of files: {}", why));
}

// Where the bytes of entry `i` begin; of the one after the last: where the list ends.
size_t begin_of(const Listing& list, size_t i) {
  constexpr size_t kLength = 4;  // of a path, before it
  if (i == list.entries().size()) return list.bytes().size();
  return static_cast<size_t>(list.entries()[i].path.data() - list.bytes().data()) - kLength;
}

std::string_view bytes_of(const Listing& list, size_t from, size_t to) {
  const size_t begin = begin_of(list, from);
  return std::string_view(list.bytes()).substr(begin, begin_of(list, to) - begin);
}

}  // namespace

// The head of the new list, then in turn how many entries of the old one stay and go, and new ones as they stand in the list.
std::string changes_between(const Listing& before, const Listing& now) {
  std::string bytes = now.bytes().substr(0, kHeadBytes);
  wire::Encoder out(bytes);
  const std::vector<EntryView>&old = before.entries(), &entries = now.entries();
  size_t b = 0, n = 0;
  auto left = [&] { return b < old.size() || n < entries.size(); };
  auto same = [&] { return b < old.size() && n < entries.size() && old[b] == entries[n] && before.with_modes() == now.with_modes(); };
  while (left()) {
    const size_t kept = b;
    for (; same(); ++b) ++n;
    const size_t gone_from = b, added_from = n;
    while (left() && !same()) {
      const bool goes = n == entries.size() || (b < old.size() && old[b].path <= entries[n].path);
      const bool comes = b == old.size() || (n < entries.size() && entries[n].path <= old[b].path);
      b += goes ? 1 : 0;
      n += comes ? 1 : 0;
    }
    out.u32(static_cast<uint32_t>(gone_from - kept));
    out.u32(static_cast<uint32_t>(b - gone_from));
    out.str(bytes_of(now, added_from, n));
  }
  return bytes;
}

base::Result<std::string> with_changes(const Listing& before, std::string_view changes) {
  if (changes.size() < kHeadBytes) return malformed("changes are cut off");
  std::string bytes(changes.substr(0, kHeadBytes));
  bytes.reserve(before.bytes().size() + changes.size());
  wire::Decoder in(changes.substr(kHeadBytes));
  size_t b = 0;
  while (!in.done()) {
    const size_t stay = in.u32(), go = in.u32(), left = before.entries().size() - b;
    const std::string_view come = in.view();
    if (!in.good() || stay > left || go > left - stay) return malformed("changes are of another list");
    bytes += bytes_of(before, b, b + stay);
    bytes += come;
    b += stay + go;
    if (bytes.size() > kMostManifestBytes) return malformed("too large");
  }
  return b == before.entries().size() ? base::Result<std::string>(std::move(bytes)) : malformed("changes are of another list");
}

}  // namespace phalanx::sync
