// What is mounted: the same on all hosts, from the server that was meant, and answering.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"
#include "doctor/views/address_words.h"
#include "doctor/views/path_view.h"
#include "machine/storage/mounts.h"

namespace phalanx::doctor {
namespace {

using machine::NetworkMount;
using machine::PathFact;

// What is no network file system was put there by some program, which alone can do it again.
std::string mount_again(const PathFact& f) {
  if (f.mount_point.empty() || f.mount_point == "/") return "";
  std::string at = base::shell_quote(f.mount_point);
  if (!machine::is_network_fs(f.fs_type)) return "sudo umount -f -l " + at;
  return fmt::format("sudo umount -f -l {0}; sudo mount -t {1} {2} {0}", at, f.fs_type, base::shell_quote(f.source));
}

// Shows whether it still hangs, without hanging. Only its server can mend it: to detach it would cost the programs that use it what
// they have not saved.
std::string ask_again(const PathFact& f) { return f.mount_point.empty() ? "" : "timeout 5 stat -f " + base::shell_quote(f.mount_point); }

// One finding per file system, not per path on it.
void hung(const Situation& s, Findings& findings) {
  std::set<std::pair<size_t, std::string>> told;
  each_path(s, [&](size_t h, const PathFact& f) {
    if (!is_hung(s, h, f.path) || !told.insert({h, f.mount_point}).second) return;
    std::string source = f.source.empty() ? "" : fmt::format(" ({} {})", f.fs_type, f.source);
    findings.on(h, tr("{} on {}{}: {}", f.path, f.mount_point, source, f.error), ask_again(f));
  });
}

void stale(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    if (!contains(f.error, "Stale file handle") && !contains(f.error, "Transport endpoint")) return;
    findings.on(h, tr("{} on {}: {}", f.path, f.mount_point, f.error), mount_again(f));
  });
}

bool network(const PathFact& f) { return machine::is_network_fs(f.fs_type); }

// The server itself has the folder on a disk of its own: that is as it should be.
bool is_server(const HostView& h, const std::string& source) {
  std::string server = machine::split_source(source).server;
  return server == h.name || server == h.facts.machine.hostname || has_address(h, server);
}

// Paths that most hosts have from a network file system, and which hosts have them from elsewhere.
struct Split {
  const PathFact* usual = nullptr;  // on the network
  std::vector<size_t> usual_hosts;
  std::vector<std::pair<size_t, const PathFact*>> others;
};
Split split(const PathOnHosts& p) {
  std::map<std::string, std::vector<std::pair<size_t, const PathFact*>>> groups;
  for (const auto& [h, f] : p.seen)
    if (!f->fs_type.empty()) groups[network(*f) ? f->fs_type + " " + machine::split_source(f->source).path : ""].emplace_back(h, f);
  Split result;
  size_t most = 0, local = groups.count("") ? groups[""].size() : 0;
  for (const auto& [key, members] : groups)
    if (!key.empty() && members.size() > most) most = members.size(), result.usual = members[0].second;
  if (!result.usual || most < local) return {};
  for (const auto& [key, members] : groups)
    for (const auto& [h, f] : members) {
      bool usual = network(*f) && f->fs_type == result.usual->fs_type &&
                   machine::split_source(f->source).path == machine::split_source(result.usual->source).path;
      if (usual) result.usual_hosts.push_back(h);
      else result.others.emplace_back(h, f);
    }
  return result;
}

bool same_content(const PathFact& a, const PathFact& b) { return !a.token.empty() && a.token == b.token; }

void mount_missing(const Situation& s, Findings& findings) {
  std::set<std::pair<size_t, std::string>> told;
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any", "workdir"})) {
    Split camps = split(p);
    for (const auto& [h, f] : camps.others) {
      if (network(*f) || same_content(*f, *camps.usual) || is_server(s.hosts[h], camps.usual->source)) continue;
      if (!told.insert({h, camps.usual->mount_point}).second) continue;
      Words others = host_names(s, camps.usual_hosts);
      const PathFact& u = *camps.usual;
      findings.on(h,
                  tr("{} is on this host's own disk ({} {}); {}: {} {}", p.path, f->mount_point, f->fs_type, others, u.fs_type, u.source),
                  fmt::format("sudo mkdir -p {0} && sudo mount -t {1} {2} {0}", base::shell_quote(u.mount_point), u.fs_type,
                              base::shell_quote(u.source)));
    }
  }
}

void mount_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any"})) {
    Split camps = split(p);
    for (const auto& [h, f] : camps.others) {
      if (!network(*f) || same_content(*f, *camps.usual)) continue;
      Words others = host_names(s, camps.usual_hosts);
      const PathFact& u = *camps.usual;
      findings.on(h, tr("{} is {} {}; {}: {} {}", p.path, f->fs_type, f->source, others, u.fs_type, u.source));
    }
  }
}

// A disk of its own elsewhere, the system's disk here: a forgotten mount fills that.
void mount_local(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output"})) {
    std::vector<size_t> own_disk, root_disk;
    std::string where;
    for (const auto& [h, f] : p.seen) {
      if (f->mount_point.empty() || network(*f) || f->fs_type == "overlay") continue;
      if (f->mount_point == "/") root_disk.push_back(h);
      else own_disk.push_back(h), where = f->mount_point;
    }
    if (root_disk.empty() || own_disk.size() < 2 || own_disk.size() <= root_disk.size()) continue;
    Words others = host_names(s, own_disk);
    findings.on(root_disk, tr("{} is on the system's disk; {}: on {}", p.path, others, where), "findmnt " + base::shell_quote(where));
  }
}

bool below(const std::string& path, const std::string& folder) {
  return path == folder || (path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 && path[folder.size()] == '/');
}

// Somebody needs it: a path of the job lies there, or another host has it mounted.
bool is_needed(const Situation& s, size_t h, const NetworkMount& m) {
  for (const PathFact& f : s.hosts[h].facts.storage.paths)
    if (below(f.path, m.mount_point)) return true;
  for (const HostView& other : s.hosts)
    for (const NetworkMount& mounted : other.facts.storage.network_mounts)
      if (mounted.mounted && mounted.mount_point == m.mount_point) return true;
  return false;
}

void not_mounted(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const NetworkMount& m : s.hosts[h].facts.storage.network_mounts) {
      if (m.mounted || !is_needed(s, h, m)) continue;
      std::string source = m.server.empty() ? m.export_path : m.server + ":" + m.export_path;
      findings.on(h, tr("{} ({} {}) is in /etc/fstab but not mounted", m.mount_point, m.fs_type, source),
                  "sudo mount " + base::shell_quote(m.mount_point));
    }
}

// An address that is one slip of the finger from one that exists. Only of a server that does not serve: neighbours have such addresses.
void nfs_typo(const Situation& s, Findings& findings) {
  std::vector<KnownAddress> known = known_addresses(s);
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const NetworkMount& m : s.hosts[h].facts.storage.network_mounts) {
      bool answers = m.mounted && !is_hung(s, h, m.mount_point) &&
                     std::none_of(s.hosts[h].facts.storage.hung.begin(), s.hosts[h].facts.storage.hung.end(),
                                  [&](const std::string& path) { return below(path, m.mount_point); });
      if (answers) continue;
      std::optional<KnownAddress> meant = probably_meant(m.server, known);
      if (!meant) continue;
      findings.on(h,
                  tr("{} is configured for {}, which does not exist here; {} is {}", m.mount_point, m.server, meant->address, meant->owner),
                  fmt::format("sudo sed -i 's/{}:/{}:/' /etc/fstab && sudo mount {}", base::replace_all(m.server, ".", "\\."),
                              meant->address, base::shell_quote(m.mount_point)));
    }
}

void cache_on_network(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    bool locks = contains(f.named_by, "TRITON") || contains(f.named_by, "Triton") || contains(f.named_by, "EXTENSIONS") ||
                 contains(f.named_by, "INDUCTOR");
    if (f.role != "cache" || !locks || !network(f) || !f.exists) return;
    findings.on(h, tr("{} ({}) is on {} {}", f.path, f.named_by, f.fs_type, f.source));
  });
}

constexpr Row kMountRows[] = {
    {"FS-HUNG", Severity::kError, hung},
    {"FS-STALE", Severity::kError, stale},
    {"FS-MOUNT-MISSING", Severity::kWarning, mount_missing},
    {"FS-MOUNT-DIFFERS", Severity::kNote, mount_differs},
    {"FS-MOUNT-LOCAL", Severity::kNote, mount_local},
    {"FS-FSTAB-NOT-MOUNTED", Severity::kWarning, not_mounted},
    {"FS-NFS-TYPO", Severity::kWarning, nfs_typo},
    {"FS-CACHE-ON-NFS", Severity::kNote, cache_on_network},
};

}  // namespace

std::span<const Row> mount_rows() { return kMountRows; }

}  // namespace phalanx::doctor
