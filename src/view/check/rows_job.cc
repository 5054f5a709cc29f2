// Rows about what the job would use on the machines: software, storage, limits, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "view/check/row_list.h"

namespace phalanx::view {
namespace {

using base::Language;
using doctor::HostView;
using doctor::Situation;
using words::Text;
using words::tr;

constexpr size_t kMostPaths = 8;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kClocksApart = 100 * kMillisecond;

const machine::PathFact* find_path(const HostView& host, const std::string& path) {
  for (const machine::PathFact& fact : host.facts.storage.paths)
    if (fact.path == path) return &fact;
  return nullptr;
}

std::string path_state(const HostView& host, const std::string& path, Language language) {
  const auto& hung = host.facts.storage.hung;
  if (std::find(hung.begin(), hung.end(), path) != hung.end()) return tr(language, "does not answer");
  const machine::PathFact* fact = find_path(host, path);
  if (!fact) return "";
  bool output = fact->role == "output";
  if (!fact->exists && !output) return tr(language, "missing");
  Text state;
  if (fact->read_only && output) state = Text{"read-only"};
  else if (fact->writable == false) state = Text{"not writable"};
  else if (!fact->exists) state = Text{"does not exist yet"};
  std::string text = join_parts({safe_text(fact->fs_type), std::string(state.in(language))});
  return text.empty() ? tr(language, "there") : text;
}

void add_path(RowList& rows, const std::string& path, bool first) {
  const Situation& s = rows.situation();
  Language language = rows.language();
  std::vector<std::string> keys = rows.each([&](const HostView& host) { return path_state(host, path, language); });
  rows.add(first ? Text{"storage"} : Text{""}, keys, [&s, language, keys, path](const Hosts& hosts) {
    int64_t least = -1;
    for (size_t h : hosts)
      if (const machine::PathFact* fact = find_path(s.hosts[h], path);
          fact && fact->total_bytes > 0 && (fact->exists || fact->role == "output"))
        least = least < 0 ? fact->free_bytes : std::min(least, fact->free_bytes);
    std::string free = least < 0 ? "" : tr(language, "{} free", bytes_text(least));
    return fmt::format("{}: {}", safe_text(path), join_parts({keys[hosts[0]], free}));
  });
}

void add_shared_memory(RowList& rows) {
  const Situation& s = rows.situation();
  std::vector<int64_t> sizes;
  for (const HostView& host : s.hosts) sizes.push_back(host.probed ? host.facts.storage.shm_total_bytes : 0);
  rows.add(Text{"/dev/shm"}, about_keys(sizes), [&s, sizes, language = rows.language()](const Hosts& hosts) {
    std::vector<int64_t> free;
    for (const HostView& host : s.hosts) free.push_back(host.facts.storage.shm_free_bytes);
    bool used = std::any_of(hosts.begin(), hosts.end(), [&](size_t h) { return free[h] < sizes[h] - sizes[h] / 8; });
    std::string left = used ? tr(language, "{} free", bytes_span(hosts, free)) : "";
    return join_parts({bytes_span(hosts, sizes), left});
  });
}

// "nofile 1024", "memlock unlimited"; empty when not known.
std::string limit(const char* name, int64_t value, bool in_bytes, Language language) {
  if (value == 0) return "";
  std::string text = value < 0 ? tr(language, "unlimited") : in_bytes ? bytes_text(value) : std::to_string(value);
  return fmt::format("{} {}", name, text);
}

std::string milliseconds(int64_t ns) {
  double ms = static_cast<double>(ns) / kMillisecond;
  if (std::abs(ms) < 0.05) return "0.0 ms";
  return std::abs(ms) < 1000 ? fmt::format("{:+.1f} ms", ms) : fmt::format("{:+.1f} s", ms / 1000);
}

}  // namespace

void add_software(RowList& rows) {
  Language language = rows.language();
  rows.plain(Text{"Python"}, [](const HostView& host) {
    const machine::SoftwareFacts& f = host.facts.software;
    if (!f.program_error.empty()) return safe_text(f.program_error);
    std::string folder = f.prefix.substr(f.prefix.rfind('/') + 1);
    bool named = f.environment_kind == "conda" || f.environment_kind == "venv";
    return join_parts({safe_text(f.python), safe_text(named ? f.environment_kind + " " + folder : f.environment_kind)});
  });
  rows.plain(Text{"torch"}, [language](const HostView& host) {
    const machine::SoftwareFacts& f = host.facts.software;
    auto torch = f.packages.find("torch");
    if (torch == f.packages.end()) return std::string(f.interpreter.empty() ? "" : Text{"not installed"}.in(language));
    std::string cuda = f.torch_cuda.empty() ? "" : f.torch_cuda == "cpu" ? "CPU" : "CUDA " + f.torch_cuda;
    std::string nccl =
        f.nccl.empty() || f.nccl[0].version.empty() ? "" : "NCCL " + f.nccl[0].version.substr(0, f.nccl[0].version.find('+'));
    return join_parts({safe_text(torch->second), safe_text(cuda), safe_text(nccl)});
  });
  // How many packages there are interests nobody, unless they are not the same.
  std::vector<std::string> prints = rows.each([](const HostView& host) { return host.facts.software.fingerprint; });
  std::set<std::string> kinds(prints.begin(), prints.end());
  kinds.erase("");
  if (kinds.size() < 2) return;
  rows.add(Text{"packages"}, prints, [&s = rows.situation(), prints](const Hosts& hosts) {
    return fmt::format("{} ({})", s.hosts[hosts[0]].facts.software.packages.size(), safe_text(prints[hosts[0]].substr(0, 8)));
  });
}

void add_storage(RowList& rows) {
  std::vector<std::string> paths;
  for (const HostView& host : rows.situation().hosts) {
    if (!host.probed) continue;
    for (const machine::PathFact& fact : host.facts.storage.paths) {
      bool of_the_job = fact.role != "tmp" && fact.role != "home" && fact.role != "cache";
      if (of_the_job && paths.size() < kMostPaths && std::find(paths.begin(), paths.end(), fact.path) == paths.end())
        paths.push_back(fact.path);
    }
  }
  for (size_t i = 0; i < paths.size(); ++i) add_path(rows, paths[i], i == 0);
  add_shared_memory(rows);
}

void add_limits(RowList& rows) {
  Language language = rows.language();
  rows.plain(Text{"limits"}, [language](const HostView& host) {
    const machine::LimitsFacts& f = host.facts.limits;
    std::string memory = f.cgroup_memory_bytes > 0 ? limit("cgroup", f.cgroup_memory_bytes, true, language) : "";
    std::string pids = f.pids_max > 0 ? limit("pids", f.pids_max, false, language) : "";
    std::string quota = f.cpu_quota > 0 ? fmt::format("{:.3g} CPU", f.cpu_quota) : "";
    return join_parts({limit("nofile", f.nofile, false, language), limit("nproc", f.nproc, false, language),
                       limit("memlock", f.memlock, true, language), memory, pids, quota});
  });
}

void add_clock(RowList& rows) {
  const Situation& s = rows.situation();
  Language language = rows.language();
  std::vector<std::string> texts = rows.each([language](const HostView& host) {
    const machine::ClockFacts& c = host.facts.clock;
    if (!c.synchronized && c.daemon.empty()) return std::string();
    Text state = c.synchronized.value_or(true) ? Text{"synchronized"} : Text{"not synchronized"};
    return join_parts({std::string(state.in(language)), safe_text(c.daemon)});
  });
  std::vector<std::string> keys = texts;
  for (size_t h = 0; h < keys.size(); ++h) {
    const std::optional<int64_t>& offset = s.hosts[h].clock_offset_ns;
    if (!s.hosts[h].probed || !offset) continue;
    keys[h] += std::abs(*offset) <= kClocksApart ? "|near" : "|" + milliseconds(*offset);
  }
  rows.add(Text{"clock"}, keys, [&s, texts](const Hosts& hosts) {
    Hosts known;
    for (size_t h : hosts)
      if (s.hosts[h].clock_offset_ns) known.push_back(h);
    std::string offset;
    if (!known.empty() && s.hosts.size() > 1) {
      auto [low, high] = std::minmax_element(known.begin(), known.end(),
                                             [&](size_t a, size_t b) { return s.hosts[a].clock_offset_ns < s.hosts[b].clock_offset_ns; });
      offset = milliseconds(*s.hosts[*low].clock_offset_ns);
      if (std::string most = milliseconds(*s.hosts[*high].clock_offset_ns); most != offset) offset += " … " + most;
    }
    return join_parts({offset, texts[hosts[0]]});
  });
}

// Where anything is not known of one host, it differs from those of which all is known; these have nothing to tell.
void add_gaps(RowList& rows) {
  std::vector<std::string> texts = rows.each([](const HostView& host) {
    std::string out;
    for (const machine::Gap& gap : host.facts.gaps)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", safe_text(gap.part), safe_text(gap.why));
    return out;
  });
  if (std::all_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); })) return;
  std::vector<std::string> keys;
  for (size_t h = 0; h < texts.size(); ++h) keys.push_back(rows.situation().hosts[h].probed ? "known except for " + texts[h] : "");
  rows.add(Text{"not known"}, keys, [texts](const Hosts& hosts) { return texts[hosts[0]]; });
}

}  // namespace phalanx::view
