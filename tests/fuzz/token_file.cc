// A token file: what is accepted lies inside the bytes, and its header can be written again.
#include "engine/data/files/token_file.h"
#include "base/check.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace engine::data;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto plain = parse_nanogpt_file(bytes); plain.ok() && plain->header.tokens > 0) {
    PHALANX_CHECK(plain->header.tokens * 2 == size);
    PHALANX_CHECK(plain->tokens.at(plain->header.tokens - 1) < 65536);
  }
  auto file = parse_token_file(bytes);
  if (!file.ok()) {
    PHALANX_CHECK(!file.error().cause.empty());
    return 0;
  }
  const TokenHeader& header = file->header;
  PHALANX_CHECK(make_token_header(header) == bytes.substr(0, kTokenHeaderBytes));
  int64_t copied = 0;
  for (uint64_t i = 0; i < header.tokens; ++i) {
    file->tokens.copy(i, 1, &copied);
    PHALANX_CHECK(copied == file->tokens.at(i) && copied >= 0);
  }
  uint64_t before = 0;
  for (uint64_t i = 0; i < header.documents; ++i) {
    PHALANX_CHECK(file->document(i) < header.tokens && (i == 0 || file->document(i) > before));
    before = file->document(i);
  }
  return 0;
}
