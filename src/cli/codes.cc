#include "cli/codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "codes/code.h"
#include "doctor/catalogue.h"
#include "hosts/lists/host_list.h"

namespace phalanx::cli {
namespace {

constexpr size_t kLongestWord = 64;  // longer words are like no code, and are not measured

// How unlike a code is what was typed: the better of the whole code, and its part behind the group ("WRONG-IFACE").
// More than `furthest` is not measured: every letter that one of the two has more is a step.
int distance(const std::string& word, std::string_view code, int furthest) {
  auto apart = [&](std::string_view other) {
    const int longer = std::abs(static_cast<int>(word.size()) - static_cast<int>(other.size()));
    return longer > furthest ? longer : base::edit_distance(word, other);
  };
  return std::min(apart(code), 1 + apart(code.substr(code.find('-') + 1)));
}

}  // namespace

std::string to_code(std::string_view word) {
  std::string code = base::replace_all(word, "_", "-");
  std::transform(code.begin(), code.end(), code.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return code;
}

std::vector<std::string_view> every_code() {
  std::vector<std::string_view> names;
  for (const codes::Code& code : codes::all()) names.push_back(code.name);
  return names;
}

base::Error unknown_code(std::string_view word) {
  std::string code = to_code(word);
  std::vector<std::pair<int, std::string>> near;
  const int furthest = static_cast<int>(std::max<size_t>(2, code.size() / 3));
  if (code.size() <= kLongestWord)
    for (std::string_view known : every_code()) {
      bool within = code.size() >= 3 && known.find(code) != std::string_view::npos;
      int apart = within ? 0 : distance(code, known, furthest);
      if (apart <= furthest) near.emplace_back(apart, known);
    }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string hint = "phalanx explain --all";
  if (!near.empty()) {
    hint = near.size() == 1   ? fmt::format("did you mean {}?", near[0].second)
           : near.size() == 2 ? fmt::format("did you mean {} or {}?", near[0].second, near[1].second)
                              : fmt::format("did you mean {}, {} or {}?", near[0].second, near[1].second, near[2].second);
  }
  return base::fail(base::ErrorKind::kUsage, fmt::format("unknown code {}", base::quote(word))).with_hint(std::move(hint));
}

base::Result<std::vector<doctor::Acceptance>> acceptances(std::string_view text) {
  const size_t at = text.find('@');
  std::vector<std::string> hosts;
  if (at != std::string_view::npos) {
    TRY_ASSIGN(const hosts::HostList list, hosts::parse_host_argument(text.substr(at + 1), "the hosts of --accept"));
    for (const hosts::HostSpec& host : list) hosts.push_back(host.name);
  }
  const std::vector<const doctor::Row*> rows = doctor::catalogue();
  std::vector<doctor::Acceptance> out;
  for (std::string_view word : base::split(text.substr(0, at), ',')) {
    word = base::trim(word);
    const std::string code = to_code(word);
    if (std::none_of(rows.begin(), rows.end(), [&](const doctor::Row* row) { return row->code == code; })) {
      base::Error error = unknown_code(word);
      if (codes::find(code)) error = base::fail(base::ErrorKind::kUsage, fmt::format("{} is not a finding of the checks", code));
      return std::move(error).within("reading the codes to accept");
    }
    out.push_back({code, hosts});
  }
  return out;
}

base::Result<std::vector<std::string>> codes_or_prefixes(const std::vector<std::string>& words) {
  std::vector<std::string> codes;
  for (const std::string& list : words)
    for (std::string_view word : base::split(list, ',')) {
      std::string code = to_code(base::trim(word));
      std::vector<const doctor::Row*> rows = doctor::catalogue();
      bool known =
          !code.empty() && std::any_of(rows.begin(), rows.end(), [&](const doctor::Row* row) { return row->code.starts_with(code); });
      if (!known) return unknown_code(base::trim(word));
      codes.push_back(std::move(code));
    }
  return codes;
}

}  // namespace phalanx::cli
