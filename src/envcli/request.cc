#include "envcli/request.h"

#include <fmt/format.h>

#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::envcli {
namespace {

using base::ErrorKind;

base::Status take_flag(Request& request, const std::string& flag) {
  constexpr std::string_view kOldPrefix = "--old-prefix=";
  if (flag.starts_with(kOldPrefix)) {
    request.old_prefixes.push_back(flag.substr(kOldPrefix.size()));
    return base::ok();
  }
  if (flag == "--json") request.json = true;
  else if (flag == "--dry-run") request.dry_run = true;
  else if (flag == "--partial") request.partial = true;
  else return base::fail(ErrorKind::kUsage, fmt::format("unknown option {}", base::quote(flag))).with_hint("phalanx help env");
  return base::ok();
}

base::Status take_operands(Request& request, std::span<const std::string> words) {
  if (words.empty() || (words[0] != "show" && words[0] != "rehome" && words[0] != "verify"))
    return base::fail(ErrorKind::kUsage,
                      words.empty() ? std::string("env needs to know what to do") : fmt::format("env cannot {}", base::quote(words[0])))
        .with_hint("phalanx env show ENV, phalanx env verify ENV, or phalanx env rehome ENV");
  if (words.size() != 2)
    return base::fail(ErrorKind::kUsage, fmt::format("env {} takes one environment", words[0]))
        .with_hint("phalanx env " + words[0] + " ENV");
  request.verb = words[0];
  request.environment = words[1];
  return base::ok();
}

}  // namespace

base::Result<Request> read_request(std::span<const std::string> arguments) {
  Request request;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    if (arguments[i] == "--") {
      ++i;
      break;
    }
    TRY(take_flag(request, arguments[i]));
  }
  TRY(take_operands(request, arguments.subspan(i)));
  return request;
}

}  // namespace phalanx::envcli
