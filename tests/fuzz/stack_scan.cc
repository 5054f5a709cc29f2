// Any bytes as /proc/<pid>/maps, as an ELF file whose symbols are looked up, as a symbol's name, as a line of /proc/<pid>/stat.
#include "machine/ranks/stack_scan.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "machine/ranks/use.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const machine::Mapping& m : machine::parse_maps(bytes)) PHALANX_CHECK(m.begin < m.end);
  machine::Symbols symbols(bytes);
  for (uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{size / 2}, uint64_t{size}, ~uint64_t{0}}) symbols.at_file_offset(offset);
  PHALANX_CHECK(machine::plain_function(std::string(bytes.substr(0, 4096))).size() <=
                512);  // a hundred characters, of which each may be shown as \xff
  machine::ProcessUse use;
  if (machine::parse_use(bytes, use)) PHALANX_CHECK(use.name.size() <= 160 && use.cpu_ms >= 0 && use.rss_kb >= 0);
  return 0;
}
