#include "hosts/lists/host_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "hosts/connect/host_collector.h"

namespace phalanx::hosts {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

constexpr size_t kMostWordsShown = 12;

// What a filter says about each host: the slots named, empty for the whole host.
using Choice = std::unordered_map<size_t, std::vector<int>>;

std::string known_names(const HostList& hosts) {
  std::vector<std::string> names;
  for (const HostSpec& host : hosts) names.push_back(host.name);
  std::vector<std::string> words = base::fold_names(names);
  bool more = words.size() > kMostWordsShown;
  if (more) words.resize(kMostWordsShown);
  return base::join(words, ", ") + (more ? ", …" : "");
}

std::vector<int> all_slots(int count) {
  std::vector<int> slots(static_cast<size_t>(count));
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

std::vector<int> without(const std::vector<int>& slots, const std::vector<int>& gone) {
  std::vector<int> left;
  std::set_difference(slots.begin(), slots.end(), gone.begin(), gone.end(), std::back_inserter(left));
  return left;
}

class FilterReader {
 public:
  FilterReader(const HostList& hosts, std::string_view text, std::string_view flag) : hosts_(hosts), text_(text), flag_(flag) {
    for (size_t i = 0; i < hosts.size(); ++i) index_.emplace(hosts[i].name, i);
  }

  Result<Choice> read() {
    size_t at = 0;
    for (std::string_view term : base::split(text_, '@')) {
      TRY(read_term(term, at));
      at += term.size() + 1;
    }
    return std::move(choice_);
  }

 private:
  Error wrong(size_t at, std::string message, std::string hint) const {
    return base::fail(ErrorKind::kUsage, fmt::format("{}, character {}", flag_, character_number(text_, at)) + ": " + message)
        .with_hint(std::move(hint));
  }

  base::Status read_term(std::string_view term, size_t at) {
    if (term.empty()) return wrong(at, "a host is missing", "write HOST[:SLOT,...] and '@' between hosts: gpu01:0,2@gpu02");
    if (auto known = index_.find(std::string(term)); known != index_.end()) return choose(known->second, {}, at);  // a name may hold a ':'
    size_t colon = term.rfind(':');
    bool in_brackets = colon != std::string_view::npos && term.find(']', colon) != std::string_view::npos;
    if (in_brackets) colon = std::string_view::npos;
    std::vector<int> slots;
    if (colon != std::string_view::npos) {
      if (auto problem = read_slots(term.substr(colon + 1), at + colon + 1, slots); !problem.ok()) return problem;
    }
    std::vector<size_t> named;
    TRY(find_hosts(term.substr(0, colon), at, named));
    for (size_t host : named) TRY(choose(host, slots, at));
    return base::ok();
  }

  base::Status find_hosts(std::string_view name, size_t at, std::vector<size_t>& named) const {
    std::vector<std::string> names{std::string(name)};
    if (name.starts_with('[') && name.ends_with(']') && name.find(':') != std::string_view::npos) {
      names = {std::string(name.substr(1, name.size() - 2))};
    } else if (name.find('[') != std::string_view::npos) {
      base::RangeFault fault;
      auto expanded = base::expand_names(name, kMostHosts, &fault);
      if (!expanded.ok()) return wrong(at + fault.at, fault.message, fault.hint);
      names = std::move(expanded).value();
    }
    for (const std::string& one : names) {
      auto known = index_.find(one);
      if (known == index_.end()) return unknown_host(one, at);
      named.push_back(known->second);
    }
    return base::ok();
  }

  Error unknown_host(const std::string& name, size_t at) const {
    std::vector<std::string> candidates;
    bool is_user = false;
    for (const HostSpec& host : hosts_) {
      candidates.push_back(host.name);
      is_user = is_user || (!host.user.empty() && host.user == name);
    }
    auto near = base::closest(name, candidates);
    std::string hint = near ? fmt::format("did you mean {}? known hosts: {}", *near, known_names(hosts_))
                            : fmt::format("known hosts: {}", known_names(hosts_));
    if (is_user) hint = fmt::format("'@' separates hosts here; write the host without its user; {}", hint);
    return wrong(at, fmt::format("unknown host {}", base::quote(name)), std::move(hint));
  }

  base::Status read_slots(std::string_view text, size_t at, std::vector<int>& slots) const {
    size_t begin = at;
    for (std::string_view part : base::split(text, ',')) {
      size_t dash = part.find('-');
      auto low = base::parse_int(part.substr(0, dash), 0, kMostSlots - 1);
      auto high = dash == std::string_view::npos ? low : base::parse_int(part.substr(dash + 1), 0, kMostSlots - 1);
      if (!low.ok() || !high.ok())
        return wrong(at, fmt::format("{} is not a valid slot", base::quote(part)),
                     "slots are numbers from 0 and ranges: gpu01:0,2 or gpu01:0-3");
      if (*high < *low) return wrong(at, fmt::format("the range {} is reversed", part), fmt::format("write {}-{}", *high, *low));
      for (int64_t slot = *low; slot <= *high; ++slot) slots.push_back(static_cast<int>(slot));
      at += part.size() + 1;
      if (slots.size() > size_t{2} * kMostSlots) break;  // more than there are: one is there twice
    }
    std::sort(slots.begin(), slots.end());
    auto twice = std::adjacent_find(slots.begin(), slots.end());
    if (twice != slots.end()) return wrong(begin, fmt::format("slot {} is named twice", *twice), "name each slot once");
    return base::ok();
  }

  base::Status choose(size_t index, std::vector<int> slots, size_t at) {
    const HostSpec& host = hosts_[index];
    if (host.slots && !slots.empty() && slots.back() >= *host.slots)
      return wrong(at, fmt::format("host {} has no slot {}", host.name, slots.back()),
                   fmt::format("its slots are {} ({})", base::format_ranges(all_slots(*host.slots)), host.source));
    if (!choice_.emplace(index, std::move(slots)).second)
      return wrong(at, fmt::format("host {} is named twice", host.name),
                   fmt::format("name it once, with all its slots: {}:0,1", host.name));
    return base::ok();
  }

  const HostList& hosts_;
  std::string_view text_;
  std::string_view flag_;
  std::unordered_map<std::string, size_t> index_;
  Choice choice_;
};

}  // namespace

Result<HostList> include_hosts(HostList hosts, std::string_view filter, std::string_view flag) {
  TRY_ASSIGN(Choice choice, FilterReader(hosts, filter, flag).read());
  HostList kept;
  for (size_t i = 0; i < hosts.size(); ++i) {
    auto named = choice.find(i);
    if (named == choice.end()) continue;
    HostSpec host = std::move(hosts[i]);
    if (!named->second.empty()) host.selected = std::move(named->second);
    kept.push_back(std::move(host));
  }
  return kept;
}

Result<HostList> exclude_hosts(HostList hosts, std::string_view filter, std::string_view flag) {
  TRY_ASSIGN(Choice choice, FilterReader(hosts, filter, flag).read());
  HostList kept;
  for (size_t i = 0; i < hosts.size(); ++i) {
    HostSpec host = std::move(hosts[i]);
    auto named = choice.find(i);
    if (named != choice.end()) {
      if (named->second.empty()) continue;
      if (!host.slots) host.left_out = std::move(named->second);
      else host.selected = without(all_slots(*host.slots), named->second);
      if (host.slots && host.selected.empty()) continue;
    }
    kept.push_back(std::move(host));
  }
  if (kept.empty()) return base::fail(ErrorKind::kUsage, fmt::format("{} leaves no hosts", flag));
  return kept;
}

Result<HostList> first_hosts(HostList hosts, int count) {
  PHALANX_CHECK(count > 0);
  if (hosts.size() < static_cast<size_t>(count))
    return base::fail(ErrorKind::kUsage,
                      fmt::format("--nnodes {} exceeds the number of available hosts: {} ({})", count, hosts.size(), known_names(hosts)));
  hosts.erase(hosts.begin() + count, hosts.end());
  return hosts;
}

Result<std::vector<int>> used_slots(const HostSpec& host, int probed) {
  int count = host.slots.value_or(probed);
  std::vector<int> all = all_slots(std::max(count, 0));
  const std::vector<int>& asked = host.selected.empty() ? host.left_out : host.selected;
  if (!asked.empty() && asked.back() >= count)
    return base::fail(ErrorKind::kUnfit, fmt::format("host {} has no slot {}", host.name, asked.back()))
        .because(all.empty() ? std::string("the host has none") : fmt::format("its slots are {}", base::format_ranges(all)));
  std::vector<int> used = host.selected.empty() ? without(all, host.left_out) : host.selected;
  if (used.empty()) return base::fail(ErrorKind::kUnfit, fmt::format("host {} has no slots left", host.name));
  return used;
}

}  // namespace phalanx::hosts
