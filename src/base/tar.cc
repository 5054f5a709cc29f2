#include "base/tar.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace phalanx::base {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMostBytes = 077777777777;  // 11 octal digits

// IEEE 1003.1, "ustar Interchange Format".
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2], user[32], group[32],
      device_major[8], device_minor[8], prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t N>
void octal(char (&field)[N], uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llo", static_cast<int>(N - 1), static_cast<unsigned long long>(value));
  std::memcpy(field, text, N);
}

}  // namespace

bool TarWriter::add(std::string_view path, std::string_view content) {
  Header header;
  std::memset(&header, 0, sizeof(header));
  if (path.empty() || content.size() > kMostBytes) return false;
  std::string_view name = path, prefix;
  if (name.size() > sizeof(header.name)) {
    size_t slash = path.find('/', path.size() - sizeof(header.name) - 1);
    if (slash == std::string_view::npos || slash == 0 || slash > sizeof(header.prefix) || slash + 1 == path.size()) return false;
    prefix = path.substr(0, slash);
    name = path.substr(slash + 1);
  }
  std::memcpy(header.name, name.data(), name.size());
  if (!prefix.empty()) std::memcpy(header.prefix, prefix.data(), prefix.size());
  octal(header.mode, 0600);
  octal(header.uid, 0);
  octal(header.gid, 0);
  octal(header.size, content.size());
  octal(header.mtime, static_cast<uint64_t>(std::max<int64_t>(0, mtime_s_)));
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += reinterpret_cast<const unsigned char*>(&header)[i];
  std::snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
  header.checksum[7] = ' ';
  out_.append(reinterpret_cast<const char*>(&header), kBlock);
  out_.append(content);
  out_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  return true;
}

std::string TarWriter::finish() && {
  out_.append(2 * kBlock, '\0');
  return std::move(out_);
}

}  // namespace phalanx::base
