#include "view/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/wrap.h"

namespace phalanx::view {
namespace {

using base::Language;
using doctor::Situation;
using doctor::Words;
using words::Text;
using words::tr;

constexpr size_t kColumns = 100;

std::string indented(const std::string& text, size_t indent) {
  std::string out;
  for (const std::string& line : base::wrap(text, kColumns - indent)) out += std::string(indent, ' ') + line + "\n";
  return out;
}

std::string hosts_text(const Situation& situation, const std::vector<size_t>& hosts, Language language) {
  if (hosts.size() == situation.hosts.size() && hosts.size() > 1) return tr(language, "all hosts");
  std::vector<std::string> names;
  for (size_t h : hosts) names.push_back(situation.hosts[h].name);
  return base::join(base::fold_names(names), ",");
}

// What is said of each host, with the reason, equals together, in the order of their first host.
class Folded {
 public:
  void add(size_t host, std::string what, std::string why) {
    auto same = std::find_if(all_.begin(), all_.end(), [&](const Entry& e) { return e.what == what && e.why == why; });
    if (same == all_.end()) same = all_.insert(all_.end(), Entry{std::move(what), std::move(why), {}});
    same->hosts.push_back(host);
  }
  std::string text(const Situation& situation, Language language) const {
    std::string out;
    for (const Entry& e : all_) {
      std::string who = situation.single() ? "" : hosts_text(situation, e.hosts, language) + tr(language, ": ");
      out += indented(who + e.what, 2);
      if (!e.why.empty()) out += indented(e.why, 6);
    }
    return out;
  }

 private:
  struct Entry {
    std::string what, why;
    std::vector<size_t> hosts;
  };
  std::vector<Entry> all_;
};

std::string section(Text title, const std::string& body, Language language) {
  return body.empty() ? "" : fmt::format("{}\n{}", title.in(language), body);
}

// "gpu01: …" of several hosts becomes one line.
std::string list_of(const Situation& situation, const std::vector<Words>& all, Language language) {
  std::vector<std::pair<std::string, std::vector<size_t>>> folded;
  std::string colon(Text{": "}.in(language));
  for (const Words& words : all) {
    std::string text = words.in(language);
    std::vector<size_t> hosts;
    for (size_t h = 0; h < situation.hosts.size() && hosts.empty(); ++h)
      if (text.rfind(situation.hosts[h].name + colon, 0) == 0) {
        hosts.push_back(h);
        text.erase(0, (situation.hosts[h].name + colon).size());
      }
    auto same = std::find_if(folded.begin(), folded.end(), [&](const auto& e) { return e.first == text && !e.second.empty(); });
    if (same == folded.end() || hosts.empty()) folded.emplace_back(text, hosts);
    else same->second.push_back(hosts[0]);
  }
  std::string out;
  for (const auto& [text, hosts] : folded) {
    std::string item = indented((hosts.empty() || situation.single() ? "" : hosts_text(situation, hosts, language) + colon) + text, 4);
    item[2] = '-';
    out += item;
  }
  return out;
}

std::string gpus_text(const Situation& situation, const job::Choices& choices, Language language) {
  Folded folded;
  for (size_t h = 0; h < choices.hosts.size(); ++h) {
    const job::HostChoice& c = choices.hosts[h];
    if (!c.has_gpus && c.gpus_why.english.empty()) continue;
    std::string indices;
    bool rising = std::is_sorted(c.gpus.begin(), c.gpus.end());
    for (int index : c.gpus) indices += (indices.empty() ? "" : ",") + std::to_string(index);
    if (rising) indices = base::format_ranges(c.gpus);
    folded.add(h, c.has_gpus ? "GPU " + indices : tr(language, "none"), c.gpus_why.in(language));
  }
  return folded.text(situation, language);
}

// Addresses differ from host to host, their reason rarely does: it is said once, at the end of those it holds for.
std::string addresses_text(const Situation& situation, const job::Choices& choices, Language language) {
  std::string out;
  for (size_t h = 0; h < choices.hosts.size(); ++h) {
    const job::HostChoice& c = choices.hosts[h];
    if (!c.address.empty())
      out += fmt::format("  {}{} ({})\n", situation.single() ? "" : situation.hosts[h].name + ": ", c.address, c.interface);
    bool last = h + 1 == choices.hosts.size() || choices.hosts[h + 1].address_why.english != c.address_why.english;
    if (last && !c.address_why.english.empty()) out += indented(c.address_why.in(language), 6);
  }
  return out;
}

std::string settings_text(const Situation& situation, const job::Choices& choices, Language language) {
  Folded folded;
  for (size_t h = 0; h < choices.hosts.size(); ++h)
    for (const job::Setting& s : choices.hosts[h].settings) folded.add(h, s.name + "=" + base::shell_quote(s.value), s.why.in(language));
  return folded.text(situation, language);
}

std::string cpus_text(const Situation& situation, const job::Choices& choices, Language language) {
  Folded folded;
  for (size_t h = 0; h < choices.hosts.size(); ++h) {
    const job::HostChoice& c = choices.hosts[h];
    std::string lists;
    for (const std::string& cpus : c.rank_cpus) lists += (lists.empty() ? "" : " | ") + cpus;
    if (!lists.empty() || !c.cpus_why.english.empty()) folded.add(h, lists.empty() ? "-" : lists, c.cpus_why.in(language));
  }
  return folded.text(situation, language);
}

}  // namespace

std::string choices_text(const Situation& situation, const job::Choices& choices, Language language) {
  return section(Text{"GPUs"}, gpus_text(situation, choices, language), language) +
         section(Text{"addresses"}, addresses_text(situation, choices, language), language) +
         section(Text{"variables set"}, settings_text(situation, choices, language), language) +
         section(Text{"CPUs of the local ranks"}, cpus_text(situation, choices, language), language) +
         section(Text{"remarks"}, list_of(situation, choices.remarks, language), language) +
         section(Text{"not available"}, list_of(situation, choices.refusals, language), language);
}

std::string rank_place(const Situation& situation, const job::Choices& choices, size_t host, size_t local_rank) {
  const job::HostChoice& c = choices.hosts[host];
  std::string out;
  if (local_rank < c.gpus.size())
    for (const machine::Gpu& g : situation.hosts[host].facts.gpus.devices)
      if (g.index == c.gpus[local_rank]) out = fmt::format("GPU {} ({}, {})", g.index, g.name, g.uuid);
  if (local_rank < c.rank_cpus.size()) out += (out.empty() ? "CPUs " : " CPUs ") + c.rank_cpus[local_rank];
  return out;
}

}  // namespace phalanx::view
