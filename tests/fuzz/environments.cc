// Records of environments and first lines of scripts, and the replacement in bytes of any kind.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "envmove/packages.h"
#include "envmove/prefix.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)envmove::parse_conda_record(text);
  if (auto line = envmove::parse_record_line(text); line && envmove::parse_record_line(envmove::record_line(*line))->path != line->path)
    abort();
  if (auto shebang = envmove::read_shebang(text)) {
    if (shebang->end > size) abort();
    (void)envmove::write_shebang(*shebang, "/new/bin/python", text.substr(shebang->end));
  }
  const envmove::Move move{{"/old", "/o/d"}, "/a/new/place"}, back{{"/a/new/place"}, "/old"};
  for (const envmove::Move& one : {move, back}) {
    if (envmove::replace_text(envmove::replace_text(text, one).data, one).hits != 0) abort();
    for (const std::optional<size_t> prepared : {std::optional<size_t>(), std::optional<size_t>(0), std::optional<size_t>(64)})
      if (envmove::replace_binary(text, one, prepared).data.size() != size) abort();
  }
  return 0;
}
