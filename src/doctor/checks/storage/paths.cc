// The paths the command names: on every host, and the same there.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/path_view.h"
#include "machine/storage/mounts.h"

namespace phalanx::doctor {
namespace {

using machine::PathFact;

// Known to be there, or known not to be: not where the file system was silent or refused to say.
bool known(const Situation& s, size_t h, const PathFact& f) { return !is_hung(s, h, f.path) && (f.exists || f.error.empty()); }

struct Presence {
  std::vector<size_t> have, lack;
  const PathFact* example = nullptr;  // of one that has it
};
Presence presence(const Situation& s, const PathOnHosts& p) {
  Presence result;
  for (const auto& [h, f] : p.seen) {
    if (!known(s, h, *f)) continue;
    (f->exists ? result.have : result.lack).push_back(h);
    if (f->exists && !result.example) result.example = f;
  }
  return result;
}

// To be typed where it is missing: from a server if it lies on one, else from a host that has it.
std::string bring(const Situation& s, const Presence& p) {
  const PathFact& f = *p.example;
  if (machine::is_network_fs(f.fs_type))
    return fmt::format("sudo mkdir -p {0} && sudo mount -t {1} {2} {0}", base::shell_quote(f.mount_point), f.fs_type,
                       base::shell_quote(f.source));
  std::string end = f.kind == "folder" ? "/" : "";
  std::string folder = f.path.substr(0, std::max<size_t>(1, f.path.rfind('/')));
  return fmt::format("mkdir -p {} && rsync -a {} {}", base::shell_quote(f.kind == "folder" ? f.path : folder),
                     base::shell_quote(s.hosts[p.have[0]].name + ":" + f.path + end), base::shell_quote(f.path + end));
}

void path_missing(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || !found.have.empty()) continue;
    Words link = p.seen[0].second->kind == "link" ? tr(", a dangling link") : Words{};
    findings.on(found.lack, tr("{} ({}) does not exist{}", p.path, p.named_by, link));
  }
}

void path_only_on(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || found.have.empty()) continue;
    Words have = host_names(s, found.have);
    findings.on(found.lack, tr("{} ({}) is missing here; it exists on {}", p.path, p.named_by, have), bring(s, found));
  }
}

void path_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"any"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || found.have.empty()) continue;
    Words have = host_names(s, found.have);
    findings.on(found.lack, tr("{} ({}) is missing here; it exists on {}", p.path, p.named_by, have), bring(s, found));
  }
}

Words kind_words(const std::string& kind) { return kind == "folder" ? tr("a folder") : tr("a file"); }

void kind_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any"})) {
    const PathFact* first = nullptr;
    for (const auto& [h, f] : p.seen) {
      if (!f->exists || (f->kind != "file" && f->kind != "folder")) continue;
      if (!first) first = f;
      if (f->kind == first->kind) continue;
      Words own = kind_words(f->kind), other = kind_words(first->kind);
      findings.on(h, tr("{} ({}) is {}; elsewhere it is {}", p.path, p.named_by, own, other));
    }
  }
}

void unreadable(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    if (f.role != "input" || !contains(f.error, "Permission denied")) return;
    findings.on(h, tr("{} ({}), as user {}: {}", f.path, f.named_by, s.hosts[h].facts.machine.user, f.error),
                "namei -l " + base::shell_quote(f.path));
  });
}

void workdir_missing(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"workdir"})) {
    Presence found = presence(s, p);
    if (found.lack.empty()) continue;
    findings.on(found.lack, tr("{} does not exist", p.path), found.have.empty() ? run_with_sync(s) : bring(s, found));
  }
}

std::string content_words(const PathFact& f) {
  if (f.kind == "file") return base::format_bytes(static_cast<uint64_t>(f.size)) + ", " + f.token;
  return base::counted("{} entries, {}", f.entries, f.token);
}

void content_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    std::vector<Camp> groups = camps(s, [&](const HostView& h) -> std::optional<std::string> {
      for (const auto& [at, f] : p.seen)
        if (&s.hosts[at] == &h && f->exists && !f->token.empty()) return f->token;
      return std::nullopt;
    });
    if (groups.size() < 2) continue;
    auto fact_of = [&](size_t host) {
      return *std::find_if(p.seen.begin(), p.seen.end(), [&](const auto& seen) { return seen.first == host; })->second;
    };
    Words usual = host_names(s, groups[0].hosts);
    std::string usual_words = content_words(fact_of(groups[0].hosts[0]));
    for (size_t g = 1; g < groups.size(); ++g) {
      PathFact odd = fact_of(groups[g].hosts[0]);
      std::string end = odd.kind == "folder" ? "/" : "";
      findings.on(groups[g].hosts, tr("{} ({}): {}; {}: {}", p.path, p.named_by, content_words(odd), usual, usual_words),
                  fmt::format("rsync -rcni {} {}", base::shell_quote(s.hosts[groups[0].hosts[0]].name + ":" + p.path + end),
                              base::shell_quote(p.path + end)));
    }
  }
}

constexpr Row kPathRows[] = {
    {"FS-PATH-MISSING", Severity::kWarning, path_missing},       {"FS-PATH-ONLY-ON", Severity::kError, path_only_on},
    {"FS-PATH-DIFFERS", Severity::kWarning, path_differs},       {"FS-KIND-DIFFERS", Severity::kWarning, kind_differs},
    {"FS-PATH-UNREADABLE", Severity::kError, unreadable},        {"FS-WORKDIR-MISSING", Severity::kError, workdir_missing},
    {"FS-CONTENT-DIFFERS", Severity::kWarning, content_differs},
};

}  // namespace

std::span<const Row> path_rows() { return kPathRows; }

}  // namespace phalanx::doctor
