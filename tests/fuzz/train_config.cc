// Any bytes as a training config, the last line as an argument. What is accepted keeps every setting in its range.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/train/config.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(text.rfind('\n'), size);
  std::vector<std::string> arguments;
  if (cut < size && text.substr(cut + 1).starts_with('@')) arguments.emplace_back(text.substr(cut + 2));
  auto config = engine::train::read_config(text.substr(0, cut), "fuzz.yaml", arguments);
  if (!config.ok()) {
    PHALANX_CHECK(!config.error().render().empty() && base::exit_code(config.error().kind) == 2);
    return 0;
  }
  for (const engine::train::Setting& setting : engine::train::settings(*config)) {
    if (auto* whole = std::get_if<int64_t*>(&setting.value)) PHALANX_CHECK(**whole >= setting.min && **whole <= setting.max);
    if (auto* real = std::get_if<double*>(&setting.value)) PHALANX_CHECK(**real >= setting.min && **real <= setting.max);
  }
  PHALANX_CHECK(!base::to_text(engine::train::to_json(*config)).empty());
  return 0;
}
