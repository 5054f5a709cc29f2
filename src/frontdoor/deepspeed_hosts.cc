#include "frontdoor/deepspeed_hosts.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::frontdoor {
namespace {

base::Error at(std::string_view path, size_t line, std::string_view what, std::string hint) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}:{}: {}", path, line, what)).with_hint(std::move(hint));
}

// What may be handed to ssh as one argument, and written into -H.
bool is_host_name(std::string_view name) {
  return !name.empty() && name[0] != '-' && name.size() <= 255 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '@' ||
           c == '%';
  });
}

Host* find(std::vector<Host>& hosts, std::string_view name) {
  auto found = std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  return found == hosts.end() ? nullptr : &*found;
}

struct Node {
  std::string_view name;
  std::vector<int> slots;  // empty: all
};

base::Result<Node> parse_node(std::string_view word) {
  Node node;
  const size_t colon = word.find(':');
  node.name = word.substr(0, colon);
  if (colon == std::string_view::npos) return node;
  for (std::string_view one : base::split(word.substr(colon + 1), ',')) {
    base::Result<int64_t> slot = base::parse_int(base::trim(one), 0, kMostSlots - 1);
    if (!slot.ok())
      return base::fail(base::ErrorKind::kUsage, fmt::format("{}: {} is not the number of a slot", base::quote(word), base::quote(one)))
          .with_hint("write HOST:0,1,2; DeepSpeed has no ranges");
    node.slots.push_back(static_cast<int>(*slot));
  }
  std::sort(node.slots.begin(), node.slots.end());
  node.slots.erase(std::unique(node.slots.begin(), node.slots.end()), node.slots.end());
  return node;
}

std::vector<int> all_slots(const Host& host) {
  if (!host.selected.empty()) return host.selected;
  std::vector<int> slots(static_cast<size_t>(host.slots));
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

}  // namespace

base::Result<Hostfile> parse_deepspeed_hostfile(std::string_view text, std::string_view path) {
  Hostfile out;
  if (text.size() > kLargestHostfile) return at(path, 1, "the file is larger than 4 MiB", "write HOST slots=N, one host a line");
  size_t number = 0;
  for (std::string_view line : base::split_lines(text)) {
    ++number;
    line = base::trim(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string_view> words = base::split_words(line.substr(0, 1024));
    const std::string_view slots = words.size() < 2 ? std::string_view() : words[1];
    size_t digits = slots.starts_with("slots=") ? 6 : slots.size();
    while (digits < slots.size() && slots[digits] >= '0' && slots[digits] <= '9') ++digits;
    if (!slots.starts_with("slots=") || digits == 6)
      return at(path, number, fmt::format("{}: no \"slots=N\" after the host", base::quote(line.substr(0, 80))),
                fmt::format("write {} slots=8", base::printable(words[0].substr(0, 80))));
    base::Result<int64_t> count = base::parse_int(slots.substr(6, digits - 6), 0, kMostSlots);
    if (!count.ok()) return at(path, number, count.error().message, "write the number of GPUs of the host");
    if (words[0].starts_with("x.x."))
      return at(path, number, fmt::format("{} is a placeholder, not a host", base::quote(words[0].substr(0, 80))),
                "write the address of the host");
    if (!is_host_name(words[0]))
      return at(path, number, fmt::format("{} cannot be the name of a host", base::quote(words[0].substr(0, 80))),
                "write one name or address a line; a port belongs into the ssh configuration, or use phalanx -H");
    if (digits < slots.size())
      out.guessed.push_back(fmt::format("{}:{}: {} is read as {}", path, number, base::printable(slots.substr(0, 40)), *count));
    if (Host* known = find(out.hosts, words[0])) {
      known->slots = std::min(known->slots + static_cast<int>(*count), kMostSlots);
      out.merged.emplace_back(words[0]);
      continue;
    }
    if (out.hosts.size() >= kMostHosts) return at(path, number, "more than 65536 hosts", "split the list");
    out.hosts.push_back({std::string(words[0]), static_cast<int>(*count)});
  }
  std::erase_if(out.hosts, [](const Host& host) { return host.slots == 0; });
  if (out.hosts.empty()) return at(path, std::max<size_t>(number, 1), "no host with a slot", "write HOST slots=N, one host a line");
  return out;
}

base::Result<std::vector<Host>> filter_hosts(const std::vector<Host>& hosts, std::string_view filter, bool include) {
  std::vector<Host> out = hosts;
  std::vector<std::string> named;
  for (std::string_view word : base::split(filter, '@')) {
    TRY_ASSIGN(Node node, parse_node(base::trim(word)));
    Host* host = find(out, node.name);
    if (!host) {
      std::vector<std::string> names;
      for (const Host& one : hosts) names.push_back(one.name);
      auto near = base::closest(node.name, names);
      names.resize(std::min<size_t>(names.size(), 8));
      return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not one of the hosts", base::quote(node.name)))
          .because(fmt::format("the hosts are {}", base::join(names, ", ")))
          .with_hint(near ? fmt::format("did you mean {}?", *near) : "write NAME[:SLOT,...][@NAME...]; '@' stands between hosts");
    }
    for (int slot : node.slots)
      if (host->slots != 0 && slot >= host->slots)
        return base::fail(base::ErrorKind::kUsage, fmt::format("{} has no slot {}", host->name, slot))
            .because(fmt::format("its slots are 0 to {}", host->slots - 1));
    named.push_back(host->name);
    if (include) {
      host->selected = node.slots;
      continue;
    }
    if (host->slots == 0 && !node.slots.empty())
      return base::fail(base::ErrorKind::kUsage, fmt::format("{}: its number of slots is not known", host->name))
          .with_hint("name the slots to use with --include instead");
    std::vector<int> left = all_slots(*host);
    std::erase_if(
        left, [&](int slot) { return node.slots.empty() || std::find(node.slots.begin(), node.slots.end(), slot) != node.slots.end(); });
    host->selected = left;
    if (left.empty()) host->slots = -1;
  }
  std::erase_if(out, [&](const Host& host) {
    return host.slots < 0 || (include && std::find(named.begin(), named.end(), host.name) == named.end());
  });
  for (Host& host : out)
    if (host.slots > 0 && static_cast<int>(host.selected.size()) == host.slots) host.selected.clear();
  if (out.empty()) return base::fail(base::ErrorKind::kUsage, fmt::format("{} leaves no host", base::quote(filter)));
  return out;
}

}  // namespace phalanx::frontdoor
