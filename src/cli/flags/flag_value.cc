#include "cli/flags/flag_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/counted.h"
#include "base/glob.h"
#include "base/text.h"
#include "base/unicode.h"
#include "cli/flags/container_wish.h"
#include "cli/flags/env_file.h"
#include "cli/flags/gpu_request.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Status;

Error wrong(std::string_view typed, std::string message, std::string hint = {}) {
  return base::fail(ErrorKind::kUsage, fmt::format("{}: {}", typed, message)).with_hint(std::move(hint));
}

// Takes over message and hint of an error that does not know the flag.
Error named(std::string_view typed, const Error& error) {
  Error out = wrong(typed, error.message, error.hint);
  out.cause = error.cause;
  return out;
}

Status check_duration(const FlagRow& row, std::string_view typed, std::string_view value) {
  auto duration = base::parse_duration(value);
  if (!duration.ok()) return named(typed, duration.error());
  std::chrono::milliseconds min(row.min), max(row.max);
  if (*duration >= min && *duration <= max) return base::ok();
  return wrong(typed, fmt::format("{} is out of range: from {} to {}", value, base::format_duration(min), base::format_duration(max)));
}

Status check_choice(const FlagRow& row, std::string_view typed, std::string_view value) {
  std::vector<std::string> choices;
  for (std::string_view choice : base::split(row.choices, '|')) choices.emplace_back(choice);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return base::ok();
  auto near = base::closest(value, choices);
  std::string hint = near ? fmt::format("did you mean {}?", *near) : "";
  bool number = row.kind == ValueKind::kRanks;
  return wrong(typed,
               number ? fmt::format("{} is not a whole number from {} to {} or one of {}", base::quote(value), row.min, row.max,
                                    base::join(choices, ", "))
                      : fmt::format("{} is not one of {}", base::quote(value), base::join(choices, ", ")),
               hint);
}

Status check_nodes(const FlagRow& row, std::string_view typed, std::string_view value) {
  size_t colon = value.find(':');
  auto least = base::parse_int(value.substr(0, colon), row.min, row.max);
  if (!least.ok()) return named(typed, least.error());
  if (colon == std::string_view::npos) return base::ok();
  auto most = base::parse_int(value.substr(colon + 1), row.min, row.max);
  if (!most.ok()) return named(typed, most.error());
  if (*least > *most)
    return wrong(typed, fmt::format("{} is more than {}", *least, *most),
                 fmt::format("write the smaller number first: {} {}:{}", typed, *most, *least));
  return base::ok();
}

Status check_assignment(std::string_view typed, std::string_view value) {
  size_t equals = value.find('=');
  std::string_view name = value.substr(0, equals);
  if (equals == std::string_view::npos)
    return wrong(typed, fmt::format("{} has no '='", base::quote(value)),
                 is_variable_name(value) ? fmt::format("write --env {0}=value, or pass on this machine's value with --export {0}", value)
                                         : fmt::format("write {} NAME=VALUE", typed));
  if (!is_variable_name(name))
    return wrong(typed, fmt::format("{} is not the name of a variable", base::quote(name)),
                 "a name consists of letters, digits and '_', and does not start with a digit");
  if (value.size() - equals - 1 > kLongestEnvValue)
    return wrong(typed, base::counted("the value of {} is longer than {} bytes", name, kLongestEnvValue));
  return base::ok();
}

Status check_ssh_option(std::string_view typed, std::string_view value) {
  size_t equals = value.find('=');
  std::string_view name = value.substr(0, equals);
  bool letters = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
  if (letters && equals != std::string_view::npos && equals + 1 < value.size()) return base::ok();
  return wrong(typed, fmt::format("{} is not an option of ssh -o", base::quote(value)),
               fmt::format("write {} Name=Value, for example {} Port=2222 (see ssh_config(5))", typed, typed));
}

}  // namespace

Status check_value(const FlagRow& row, std::string_view typed, std::string_view value) {
  if (value.empty()) return wrong(typed, "the value is empty");
  switch (row.kind) {
    case ValueKind::kNone:
    case ValueKind::kText:
    case ValueKind::kPath:
    case ValueKind::kDirectory: return base::ok();
    case ValueKind::kDuration: return check_duration(row, typed, value);
    case ValueKind::kChoice: return check_choice(row, typed, value);
    case ValueKind::kNodes: return check_nodes(row, typed, value);
    case ValueKind::kAssignment: return check_assignment(typed, value);
    case ValueKind::kSshOption: return check_ssh_option(typed, value);
    case ValueKind::kRanks:
      if (base::parse_int(value, row.min, row.max).ok()) return base::ok();
      return check_choice(row, typed, value);
    case ValueKind::kInt: {
      auto number = base::parse_int(value, row.min, row.max);
      return number.ok() ? base::ok() : Status(named(typed, number.error()));
    }
    case ValueKind::kGpuWish: {
      auto wish = parse_gpu_request(value, row.max);
      return wish.ok() ? base::ok() : Status(named(typed, wish.error()));
    }
    case ValueKind::kBytes: {
      auto bytes = base::parse_bytes(value);
      if (!bytes.ok()) return named(typed, bytes.error());
      if (*bytes < row.min)
        return wrong(typed, fmt::format("{} is too small: the minimum is {}", value, base::format_bytes(static_cast<uint64_t>(row.min))));
      return base::ok();
    }
    case ValueKind::kContainer: {
      auto wish = parse_container_wish(value);
      return wish.ok() ? base::ok() : Status(named(typed, wish.error()));
    }
    case ValueKind::kGlob: {
      auto glob = base::Glob::compile(value);
      return glob.ok() ? base::ok() : Status(named(typed, glob.error()));
    }
  }
  return base::ok();
}

int int_value(std::string_view value) { return static_cast<int>(base::parse_int(value, INT_MIN, INT_MAX).value()); }
std::chrono::milliseconds duration_value(std::string_view value) { return base::parse_duration(value).value(); }

}  // namespace phalanx::cli
