// Any bytes through the line splitter: torn anywhere, with pauses. Chunks keep their promises, and text without "\r" or
// pauses comes out byte for byte.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "logs/line_splitter.h"

using namespace phalanx;

// The first byte chooses how the rest is torn; 0 after it never pauses.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  size_t step = 1 + (data[0] >> 2), pauses = data[0] & 3;
  std::string lines;
  logs::LineSplitter splitter;
  auto sink = [&](const logs::Chunk& chunk) {
    PHALANX_CHECK(!chunk.bytes.empty() && chunk.bytes.size() <= 2 * logs::kMaxLineBytes);
    if (chunk.kind == wire::OutputKind::kProgress) {
      PHALANX_CHECK(chunk.bytes.find_first_of("\r\n") == std::string_view::npos);
      return;
    }
    PHALANX_CHECK(chunk.bytes.back() == '\n');
    PHALANX_CHECK(!chunk.cut || chunk.bytes.find('\n') == chunk.bytes.size() - 1);
    PHALANX_CHECK(chunk.bytes.find('\r') == std::string_view::npos);
    lines += chunk.bytes;
  };
  for (size_t at = 0; at < text.size(); at += step) {
    splitter.feed(text.substr(at, step), sink);
    for (size_t i = 0; i < pauses; ++i) splitter.flush_stale(sink);
  }
  splitter.finish(sink);
  PHALANX_CHECK(!splitter.has_tail());
  if (pauses == 0 && text.find('\r') == std::string_view::npos) {
    std::string expected(text);
    if (!expected.empty() && expected.back() != '\n') expected += '\n';
    PHALANX_CHECK(lines == expected);
  }
  return 0;
}
