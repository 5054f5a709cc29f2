#include "envmove/scan_file.h"

#include <cstring>

#include <algorithm>
#include <memory>

#include "base/try.h"
#include "envmove/packages.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kPiece = 1 << 20;

// The bytes to look for; a hit need not stand at the borders of a path. The wide ones begin with the first character's own bytes.
std::vector<std::string> needles(const Move& move, bool wide, bool urls) {
  std::vector<std::string> out = move.old_prefixes;
  for (const std::string& old : move.old_prefixes)
    for (const Spelling spelling : kOtherSpellings)
      if (std::string other = spelled(old, spelling); other != old) out.push_back(std::move(other));
  if (urls)
    for (const std::string& old : move.old_prefixes) out.push_back(url_of_path(old));
  for (const std::string& old : move.old_prefixes) {
    if (!wide) continue;
    std::string two, four;
    for (size_t i = 0; i < old.size(); ++i) {
      two += old[i];
      four += old[i];
      if (i + 1 < old.size()) two += '\0', four += std::string(3, '\0');
    }
    out.push_back(std::move(two));  // both byte orders: the zeros between are the same
    out.push_back(std::move(four));
  }
  return out;
}

}  // namespace

base::Result<Scanned> scan_file(const os::Fd& file, const std::string& path, std::string_view name, const Managed* managed,
                                const Move& move) {
  // Not filled with zeros: most files are much shorter.
  const auto buffer = std::make_unique_for_overwrite<char[]>(kPiece);
  Scanned out;
  std::vector<std::string> wanted;
  size_t held = 0, longest = 0;
  for (off_t from = 0;;) {
    TRY_ASSIGN(size_t size, os::read_at(file, path, from, buffer.get() + held, kPiece - held));
    const std::string_view piece(buffer.get(), held + size);
    if (from == 0) {
      out.file_class = classify(name, piece.substr(0, kClassifiedBytes), managed);
      if (out.file_class == FileClass::kBytecode) return out;
      wanted = needles(move, out.file_class == FileClass::kBinary && managed, is_url_file(name));
      for (const std::string& one : wanted) longest = std::max(longest, one.size());
    }
    for (const std::string& one : wanted)
      if (memmem(piece.data(), piece.size(), one.data(), one.size())) {
        out.holds_old_prefix = true;
        return out;
      }
    if (size < kPiece - held) return out;
    from += static_cast<off_t>(size);
    held = std::min(longest, piece.size());
    std::memmove(buffer.get(), buffer.get() + piece.size() - held, held);
  }
}

}  // namespace phalanx::envmove
