#include "job/facts_bounds.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json_fields.h"
#include "base/try.h"
#include "wire/bounds.h"

namespace phalanx::job {
namespace {

using base::ErrorKind;
using base::fail;
using base::Json;

constexpr size_t kMostItems = 16'384;    // of one list or object
constexpr size_t kMostValues = 500'000;  // of a document
constexpr size_t kMostStringBytes = 1 << 20;
constexpr size_t kMostKeyBytes = 4096;

bool is_control(std::string_view text, size_t i) {
  auto c = static_cast<unsigned char>(text[i]);
  if (c < 0x20) return c != '\n' && c != '\t' && c != '\r';
  return c == 0x7f || (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) - 0x80u < 0x20u);
}

void clean(std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_control(text, i)) continue;
    if (text[i] == '\xc2') text.replace(i, 2, "?");  // a control of two bytes, U+0080 to U+009F
    else text[i] = '?';
  }
}

bool has_control(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (is_control(text, i)) return true;
  return false;
}

base::Status bound(Json& json, size_t& values) {
  if (++values > kMostValues) return fail(ErrorKind::kInternal, base::counted("more than {} values", kMostValues));
  if (json.is_string()) {
    std::string& text = json.get_ref<std::string&>();
    if (text.size() > kMostStringBytes) return fail(ErrorKind::kInternal, base::counted("a text of {} bytes", text.size()));
    clean(text);
    return base::ok();
  }
  if (!json.is_array() && !json.is_object()) return base::ok();
  if (json.size() > kMostItems) return fail(ErrorKind::kInternal, fmt::format("a list of {}, at most {}", json.size(), kMostItems));
  if (json.is_object())
    for (auto it = json.begin(); it != json.end(); ++it)
      if (has_control(it.key()) || it.key().size() > kMostKeyBytes) return fail(ErrorKind::kInternal, "an invalid name");
  for (Json& item : json) TRY(bound(item, values));
  return base::ok();
}

}  // namespace

base::Result<Json> parse_from_host(const std::string& text) {
  TRY_ASSIGN(Json json, base::parse_json(text));
  size_t values = 0;
  TRY(bound(json, values));
  return json;
}

base::Result<machine::Facts> facts_from_host(const std::string& text) {
  TRY_ASSIGN(Json json, parse_from_host(text));
  TRY_ASSIGN(machine::Facts facts, base::from_json<machine::Facts>(json));
  auto within = [](int64_t value, int64_t most) { return value >= 0 && value <= most; };
  if (facts.gpus.devices.size() > wire::kMostOfAHost)
    return fail(ErrorKind::kInternal, base::counted("{} GPUs", facts.gpus.devices.size()));
  for (const machine::Gpu& gpu : facts.gpus.devices)
    if (!within(gpu.index, wire::kMostOfAHost)) return fail(ErrorKind::kInternal, fmt::format("an invalid GPU number {}", gpu.index));
  for (int64_t cpus : {facts.machine.cpus_online, facts.machine.cpus_usable})
    if (!within(cpus, 1 << 16)) return fail(ErrorKind::kInternal, base::counted("{} CPUs", cpus));
  if (!within(facts.clock.wall_ns, wire::kMostWallNs)) return fail(ErrorKind::kInternal, "an invalid wall-clock time");
  if (facts.clock.mono_ns < -wire::kMostMonoNs || facts.clock.mono_ns > wire::kMostMonoNs)
    return fail(ErrorKind::kInternal, "an invalid clock reading");
  return facts;
}

}  // namespace phalanx::job
