// Room and permission where the job writes.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/path_view.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kGiB = 1 << 30;
constexpr int64_t kSlow_ns = 500'000'000;

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

bool refused(const machine::PathFact& f) { return f.writable == false; }
bool no_space(const machine::PathFact& f) {
  return refused(f) && (contains(f.error, "No space left") || contains(f.error, "quota exceeded"));
}
bool no_inodes(const machine::PathFact& f) {
  return refused(f) && contains(f.error, "No space left") && f.inodes > 0 && f.free_inodes == 0;
}
bool read_only(const machine::PathFact& f) { return refused(f) && (f.read_only || contains(f.error, "Read-only")); }

void disk_full(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "output" || !no_space(f) || no_inodes(f)) return;
    std::string free = bytes(f.free_bytes);
    findings.on(h, tr("{} ({}) on {}: {}; {} free", f.path, f.named_by, f.mount_point, f.error, free),
                "du -xh --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -h | tail");
  });
}

void inodes_full(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "output" || !no_inodes(f)) return;
    std::string free = bytes(f.free_bytes);
    findings.on(h, tr("{} ({}) on {}: 0 of {} inodes free, although {} are free", f.path, f.named_by, f.mount_point, f.inodes, free),
                "du --inodes -x --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -n | tail");
  });
}

void read_only_output(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "output" || !read_only(f)) return;
    findings.on(h, tr("{} ({}) is on {}, mounted read-only", f.path, f.named_by, f.mount_point),
                "sudo mount -o remount,rw " + base::shell_quote(f.mount_point));
  });
}

void not_writable(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "output" || !refused(f) || no_space(f) || read_only(f) || is_hung(s, h, f.path)) return;
    const machine::Machine& m = s.hosts[h].facts.machine;
    bool permission = contains(f.error, "denied") || contains(f.error, "not permitted");
    findings.on(h, tr("{} ({}), as user {}: {}", f.path, f.named_by, m.user, f.error),
                permission ? fmt::format("sudo install -d -o {} {}", base::shell_quote(m.user), base::shell_quote(f.path)) : "");
  });
}

void scratch(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "tmp" || !refused(f)) return;
    findings.on(h, tr("{} ({}): {}", f.path, f.named_by, f.error));
  });
}

bool is_variable(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// A default folder matters only to who has PyTorch; one that the user names matters always.
void cache(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if (f.role != "cache" || !refused(f)) return;
    if (!is_variable(f.named_by) && !s.hosts[h].facts.software.packages.count("torch")) return;
    findings.on(h, tr("{} ({}): {}", f.path, f.named_by, f.error));
  });
}

void disk_low(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if ((f.role != "output" && f.role != "tmp") || f.total_bytes <= 0 || no_space(f)) return;
    int64_t enough = f.role == "output" ? 20 * kGiB : kGiB;
    if (f.free_bytes * 20 >= f.total_bytes || f.free_bytes >= enough) return;
    std::string free = bytes(f.free_bytes), total = bytes(f.total_bytes);
    findings.on(h, tr("{} ({}): {} of {} free on {}", f.path, f.named_by, free, total, f.mount_point),
                "du -xh --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -h | tail");
  });
}

void inodes_low(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const machine::PathFact& f) {
    if ((f.role != "output" && f.role != "cache") || f.inodes <= 0 || no_inodes(f)) return;
    constexpr int64_t kEnough = 10'000;
    if (f.free_inodes * 100 >= f.inodes || f.free_inodes >= kEnough) return;
    findings.on(h, tr("{} ({}): {} of {} inodes free on {}", f.path, f.named_by, f.free_inodes, f.inodes, f.mount_point),
                "du --inodes -x --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -n | tail");
  });
}

void slow_write(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"output"})) {
    std::vector<int64_t> times;
    for (const auto& [h, f] : p.seen)
      if (f->write_ns > 0) times.push_back(f->write_ns);
    if (times.size() < 2) continue;
    std::sort(times.begin(), times.end());
    int64_t usual = times[(times.size() - 1) / 2];
    for (const auto& [h, f] : p.seen) {
      if (f->write_ns < kSlow_ns || f->write_ns < 10 * usual) continue;
      std::string own = base::format_duration(std::chrono::nanoseconds(f->write_ns));
      std::string others = base::format_duration(std::chrono::nanoseconds(usual));
      findings.on(h, tr("64 KiB written and synced in {} took {}; elsewhere {}", f->path, own, others));
    }
  }
}

constexpr Row kSpaceRows[] = {
    {"FS-DISK-FULL", Severity::kError, disk_full},        {"FS-INODES-FULL", Severity::kError, inodes_full},
    {"FS-READ-ONLY", Severity::kError, read_only_output}, {"FS-NOT-WRITABLE", Severity::kError, not_writable},
    {"FS-TMP-NOT-WRITABLE", Severity::kWarning, scratch}, {"FS-CACHE-NOT-WRITABLE", Severity::kWarning, cache},
    {"FS-DISK-LOW", Severity::kWarning, disk_low},        {"FS-INODES-LOW", Severity::kWarning, inodes_low},
    {"FS-SLOW-WRITE", Severity::kWarning, slow_write},
};

}  // namespace

std::span<const Row> space_rows() { return kSpaceRows; }

}  // namespace phalanx::doctor
