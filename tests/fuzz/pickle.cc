// Any bytes as a pickle: an answer within the limits that can be written as JSON and read again, or an error.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/pickle.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto json = base::parse_pickle(std::string_view(reinterpret_cast<const char*>(data), size), {.bytes = 1 << 16, .values = 100'000});
  if (!json.ok()) {
    PHALANX_CHECK(!json.error().message.empty());
    return 0;
  }
  PHALANX_CHECK(!base::to_text(*json).empty());
  return 0;
}
