#include "cli/records/named_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
using base::is_digit;

// "2026", "20261121-07", "a3f9": find_run would look for an id.
bool may_be_id(std::string_view name) {
  if (name == "latest") return true;
  const bool hex = std::all_of(name.begin(), name.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  return (hex && name.size() == 4) || name.find_first_not_of("0123456789-") == std::string_view::npos || logs::is_run_id(name);
}

}  // namespace

base::Status check_run_name(std::string_view name) {
  auto refuse = [&](std::string why) {
    return base::fail(base::ErrorKind::kUsage, fmt::format("--name {}: {}", base::quote(name), why)).with_hint("--name llama-7b-try2");
  };
  if (name.size() > kMostNameBytes) return refuse(base::counted("longer than {} bytes", kMostNameBytes));
  const bool plain = !name.empty() && (is_letter(name[0]) || is_digit(name[0])) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
  });
  if (!plain) return refuse("a name has letters, digits, '.', '_' and '-', and begins with a letter or a digit");
  if (may_be_id(name)) return refuse("it could be the id of a run");
  return base::ok();
}

base::Result<logs::Run> find_named_run(const std::string& folder, std::string_view word, OfOneName wanted) {
  if (!check_run_name(word).ok()) return logs::find_run(folder, word);
  TRY_ASSIGN(std::vector<logs::Run> all, logs::list_runs(folder));
  std::erase_if(all, [&](const logs::Run& run) { return !run.ours || base::get_string(run.record, "name") != word; });
  if (all.empty()) return logs::find_run(folder, word);
  if (wanted == OfOneName::kNewest) return std::move(all.front());
  std::vector<const logs::Run*> going_on;
  for (const logs::Run& run : all)
    if (run.life != logs::Life::kEnded) going_on.push_back(&run);
  if (going_on.size() > 1)
    return base::fail(base::ErrorKind::kUsage, base::counted("{} runs named {} have not ended", going_on.size(), base::quote(word)))
        .because(fmt::format("of them {} and {}", going_on[0]->id, going_on[1]->id))
        .with_hint("give the id of one: phalanx ps");
  return going_on.empty() ? std::move(all.front()) : *going_on.front();
}

}  // namespace phalanx::cli
