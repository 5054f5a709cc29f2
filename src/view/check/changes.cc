#include "view/check/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/unicode.h"
#include "view/check/layout.h"
#include "view/explain_view.h"

namespace phalanx::view {
namespace {

using doctor::Finding;
using words::Text;

// Of what news are made: a code on a host (or on the job: no host), or a host without an answer (no code).
struct Item {
  std::string code;
  std::string host;
  bool operator<(const Item& other) const { return std::tie(code, host) < std::tie(other.code, other.host); }
};

std::map<Item, const Finding*> items(const CheckRound& round) {
  std::map<Item, const Finding*> all;
  for (const doctor::HostView& host : round.situation.hosts)
    if (!host.probed) all[{"", host.name}] = nullptr;
  for (const Finding& finding : round.examination.findings) {
    if (finding.hosts.empty()) all[{std::string(finding.row->code), ""}] = &finding;
    for (size_t h : finding.hosts) all[{std::string(finding.row->code), round.situation.hosts[h].name}] = &finding;
  }
  return all;
}

// Items that only `here` has, those of one finding together, as "error CODE: hosts: evidence".
std::vector<std::string> only_in(const CheckRound& here, const CheckRound& other, const CheckStyle& style) {
  std::map<Item, const Finding*> mine = items(here), theirs = items(other);
  std::vector<std::string> lines;
  std::vector<std::string> silent;
  std::map<const Finding*, std::vector<std::string>> news;
  for (const auto& [item, finding] : mine) {
    if (theirs.contains(item)) continue;
    if (finding) news[finding].push_back(item.host);
    else silent.push_back(item.host);
  }
  if (!silent.empty()) lines.push_back(fmt::format("{} {}", Text{"no answer from"}.in(style.language), fold_list(silent)));
  for (const Finding& finding : here.examination.findings) {
    auto found = news.find(&finding);
    if (found == news.end()) continue;
    std::string hosts = found->second[0].empty() ? "" : fold_list(found->second) + ": ";
    lines.push_back(fmt::format("{} {}: {}{}", severity_name(finding.row->severity).in(style.language), finding.row->code, hosts,
                                base::printable(finding.evidence.in(style.language), 2000)));
  }
  return lines;
}

}  // namespace

std::string check_changes(const CheckRound& before, const CheckRound& now, std::string_view time, const CheckStyle& style) {
  Page page(style);
  auto add = [&](Text word, const std::vector<std::string>& lines) {
    std::string lead = fmt::format("{}  {}  ", time, word.in(style.language));
    size_t indent = base::display_width(lead);
    for (const std::string& line : lines)
      page.row(lead, indent, {{line, Look::kPlain}}, {style.columns - std::min(indent, style.columns - 20)});
  };
  add(Text{"new "}, only_in(now, before, style));
  add(Text{"gone"}, only_in(before, now, style));
  return page.take();
}

}  // namespace phalanx::view
