// /dev/shm: where the DataLoader's workers hand over batches and NCCL's ranks of one host meet.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/path_view.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

// In a container it is an argument of whoever starts that.
std::string larger_shm(const HostView& h) { return h.facts.machine.container.empty() ? "sudo mount -o remount,size=50% /dev/shm" : ""; }

// Linux gives tmpfs half of the memory; container engines give 64 MiB. What is far below the first is a limit that somebody set.
bool is_small(const HostView& h) {
  int64_t total = h.facts.storage.shm_total_bytes, memory = h.facts.machine.memory_bytes;
  if (total <= 0) return false;
  return memory > 0 ? total < kGiB && total < memory / 4 : total <= 64 * kMiB;
}

void shm_small(const Situation&, size_t h, const HostView& host, Findings& findings) {
  if (!is_small(host)) return;
  std::string total = bytes(host.facts.storage.shm_total_bytes);
  findings.on(h, tr("the size of /dev/shm is {}", total), larger_shm(host));
}

void shm_missing(const Situation&, size_t h, const HostView& host, Findings& findings) {
  // Facts without a mount were never gathered.
  if (host.facts.storage.shm_present || host.facts.storage.paths.empty()) return;
  findings.on(h, tr("the directory /dev/shm does not exist"), "sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm");
}

void shm_full(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::StorageFacts& f = host.facts.storage;
  if (f.shm_total_bytes <= 0 || is_small(host)) return;
  if (f.shm_free_bytes >= kGiB || f.shm_free_bytes * 10 >= f.shm_total_bytes) return;
  std::string free = bytes(f.shm_free_bytes), total = bytes(f.shm_total_bytes), orphans = bytes(f.shm_orphan_bytes);
  Words words = tr("/dev/shm has {} of {} free", free, total);
  if (f.shm_orphan_bytes > 0) words += tr("; dead jobs left {} of it behind", orphans);
  findings.on(h, words, "ls -lS /dev/shm | head");
}

void shm_orphans(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::StorageFacts& f = host.facts.storage;
  if (f.shm_orphans.empty()) return;
  std::string size = bytes(f.shm_orphan_bytes), fix = "rm";
  for (const std::string& name : f.shm_orphans) {
    if (fix.size() > 800) break;
    fix += " " + base::shell_quote("/dev/shm/" + name);
  }
  std::string first = base::shell_quote(f.shm_orphans[0]);
  findings.on(h, tr("{} in /dev/shm that no process here uses: {}{}", size, first, f.shm_orphans.size() > 1 ? tr(" …") : Words{}), fix);
}

void remove_ipc(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    constexpr int64_t kFirstPerson = 1000;  // system users are exempt (logind.conf(5))
    const HostView& host = s.hosts[h];
    if (!host.probed || host.facts.storage.remove_ipc != true || host.facts.machine.uid < kFirstPerson) continue;
    findings.on(h, tr("logind.conf says RemoveIPC=yes"));
  }
}

constexpr Row kSharedMemoryRows[] = {
    {"FS-SHM-SMALL", Severity::kWarning, shm_small}, {"FS-SHM-MISSING", Severity::kWarning, shm_missing},
    {"FS-SHM-FULL", Severity::kWarning, shm_full},   {"FS-SHM-ORPHANS", Severity::kNote, shm_orphans},
    {"FS-REMOVE-IPC", Severity::kNote, remove_ipc},
};

}  // namespace

std::span<const Row> shared_memory_rows() { return kSharedMemoryRows; }

}  // namespace phalanx::doctor
