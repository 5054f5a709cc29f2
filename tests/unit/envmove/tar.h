// Entries of a tar (POSIX.1-1988 ustar), with whatever names and types a test wants.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace phalanx::tar {

inline std::string entry(std::string_view name, char type, std::string_view content = "", std::string_view link = "",
                         unsigned mode = 0644) {
  std::string head(512, '\0');
  name.copy(head.data(), 100);
  std::snprintf(head.data() + 100, 8, "%07o", mode);
  std::snprintf(head.data() + 108, 8, "%07o", 12345U);
  std::snprintf(head.data() + 116, 8, "%07o", 12345U);
  std::snprintf(head.data() + 124, 12, "%011zo", content.size());
  std::snprintf(head.data() + 136, 12, "%011o", 1'700'000'000U);
  std::memset(head.data() + 148, ' ', 8);
  head[156] = type;
  link.copy(head.data() + 157, 100);
  std::memcpy(head.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (unsigned char c : head) sum += c;
  std::snprintf(head.data() + 148, 8, "%06o", sum);
  std::string out = head + std::string(content);
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}
inline std::string file(std::string_view name, std::string_view content, unsigned mode = 0644) {
  return entry(name, '0', content, "", mode);
}
inline std::string folder(std::string_view name) { return entry(name, '5', "", "", 0755); }
inline std::string symbolic(std::string_view name, std::string_view to) { return entry(name, '2', "", to); }
inline std::string hard(std::string_view name, std::string_view to) { return entry(name, '1', "", to); }
inline std::string end() { return std::string(1024, '\0'); }

}  // namespace phalanx::tar
