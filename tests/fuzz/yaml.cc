// Any bytes as YAML: an answer within the limits, or an error; what is read can be written as JSON and read again.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/yaml.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto yaml = base::parse_yaml(std::string_view(reinterpret_cast<const char*>(data), size), 1 << 16);
  if (!yaml.ok()) {
    PHALANX_CHECK(!yaml.error().message.empty());
    return 0;
  }
  PHALANX_CHECK(base::parse_json(base::to_text(yaml->value), 1 << 30).ok());
  for (const auto& [key, line] : yaml->lines) PHALANX_CHECK(line >= 1);
  return 0;
}
