#include "doctor/examine.h"

#include <algorithm>

#include "base/text.h"

namespace phalanx::doctor {
namespace {

bool wanted(const Row& row, const std::vector<std::string>& only) {
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [&](const std::string& word) { return row.code.substr(0, word.size()) == word; });
}

// Rows write "sudo"; where root logs in it is not needed, and often not installed.
void fit_to_user(const Situation& situation, Finding& f) {
  std::vector<size_t> typed_on = f.hosts;
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (!f.where.empty() && situation.hosts[h].name == f.where) typed_on = {h};
  bool root = !typed_on.empty() && std::all_of(typed_on.begin(), typed_on.end(), [&](size_t h) {
    return situation.hosts[h].probed && situation.hosts[h].facts.machine.uid == 0;
  });
  if (root) f.fix = base::replace_all(f.fix, "sudo ", "");
}

// Findings of one row that say the same of several hosts become one.
void fold_into(std::vector<Finding>& all, std::vector<Finding> found) {
  size_t first = all.size();
  for (Finding& f : found) {
    auto same = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), [&](const Finding& other) {
      return !f.hosts.empty() && !other.hosts.empty() && other.evidence.english == f.evidence.english && other.fix == f.fix &&
             other.where == f.where;
    });
    if (same == all.end()) {
      all.push_back(std::move(f));
      continue;
    }
    for (size_t host : f.hosts)
      if (std::find(same->hosts.begin(), same->hosts.end(), host) == same->hosts.end()) same->hosts.push_back(host);
    std::sort(same->hosts.begin(), same->hosts.end());
  }
}

}  // namespace

Examination examine(const Situation& situation, const std::vector<std::string>& only) {
  Examination result;
  for (const Row* row : catalogue()) {
    if (!wanted(*row, only)) continue;
    std::vector<Finding> found;
    Findings findings(*row, found);
    row->look(situation, findings);
    for (Finding& f : found) fit_to_user(situation, f);
    fold_into(result.findings, std::move(found));
  }
  std::stable_sort(result.findings.begin(), result.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.row->severity < b.row->severity; });
  count_again(result);
  return result;
}

void count_again(Examination& e) {
  e.errors = e.warnings = e.notes = 0;
  for (const Finding& f : e.findings)
    if (!f.accepted) ++(f.row->severity == Severity::kError ? e.errors : f.row->severity == Severity::kWarning ? e.warnings : e.notes);
}

std::vector<Camp> camps(const Situation& situation, const std::function<std::optional<std::string>(const HostView&)>& key) {
  std::vector<Camp> all;
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    if (!situation.hosts[h].probed) continue;
    std::optional<std::string> value = key(situation.hosts[h]);
    if (!value) continue;
    auto camp = std::find_if(all.begin(), all.end(), [&](const Camp& c) { return c.value == *value; });
    if (camp == all.end()) camp = all.insert(all.end(), Camp{*value, {}});
    camp->hosts.push_back(h);
  }
  std::stable_sort(all.begin(), all.end(), [](const Camp& a, const Camp& b) { return a.hosts.size() > b.hosts.size(); });
  return all;
}

}  // namespace phalanx::doctor
