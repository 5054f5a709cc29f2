#include "view/speed.h"

#include <cmath>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "words/message.h"

namespace phalanx::view {

std::string format_count(double value) {
  constexpr const char* kScales[] = {"", "k", "M", "G", "T"};
  size_t scale = 0;
  for (; std::abs(value) >= 999.5 && scale < 4; ++scale) value /= 1000;
  if (scale == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, std::abs(value) < 99.95 ? 1 : 0, kScales[scale]);
}

std::string speed_text(std::optional<double> tokens_per_s, std::optional<double> samples_per_s, base::Language language) {
  if (tokens_per_s && std::isfinite(*tokens_per_s)) return words::tr(language, "{} tok/s", format_count(*tokens_per_s));
  if (samples_per_s && std::isfinite(*samples_per_s)) return words::tr(language, "{} samples/s", format_count(*samples_per_s));
  return "";
}

std::string speed_text(const base::Json& progress, base::Language language) {
  return speed_text(base::get_number(progress, "tokens_per_s"), base::get_number(progress, "samples_per_s"), language);
}

}  // namespace phalanx::view
