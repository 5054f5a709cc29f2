#include "envcli/request.h"

#include <algorithm>
#include <iterator>

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
  constexpr std::string_view kTo = "--to=";
  if (flag.starts_with(kTo)) {
    request.to = flag.substr(kTo.size());
    return base::ok();
  }
  constexpr std::string_view kOutput = "--output=";
  if (flag.starts_with(kOutput)) {
    request.output = flag.substr(kOutput.size());
    return base::ok();
  }
  if (flag == "--json") request.json = true;
  else if (flag == "--dry-run") request.dry_run = true;
  else if (flag == "--partial") request.partial = true;
  else if (flag == "--no-hashes") request.hashes = false;
  else return base::fail(ErrorKind::kUsage, fmt::format("unknown option {}", base::quote(flag))).with_hint("phalanx help env");
  return base::ok();
}

constexpr std::string_view kVerbs[] = {"show", "verify", "rehome", "pack", "unpack", "prepare", "compare"};

base::Status take_operands(Request& request, std::span<const std::string> words) {
  if (words.empty() || std::find(std::begin(kVerbs), std::end(kVerbs), words[0]) == std::end(kVerbs))
    return base::fail(ErrorKind::kUsage,
                      words.empty() ? std::string("env needs to know what to do") : fmt::format("env cannot {}", base::quote(words[0])))
        .with_hint("phalanx help env");
  if (words[0] == "unpack") {
    if (words.size() != 3)
      return base::fail(ErrorKind::kUsage, "env unpack takes a file and the directory to make")
          .with_hint("phalanx env unpack FILE DIRECTORY");
    request.place = words[2];
  } else if (words.size() != 2)
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
