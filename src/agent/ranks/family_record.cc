#include "agent/ranks/family_record.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/scratch.h"
#include "base/text.h"
#include "machine/ranks/process_table.h"
#include "os/family.h"
#include "os/files.h"

namespace phalanx::agent {
namespace {

constexpr const char* kFile = "/family";
constexpr const char* kMagic = "phalanx family 1";
constexpr size_t kMostBytes = 1 << 20;

int64_t start_of(pid_t pid) {
  machine::ProcessStat stat;
  return machine::read_stat("", pid, stat) ? stat.start_ticks : 0;
}

void take(const std::string& text, machine::RunEvidence& evidence) {
  std::vector<std::string_view> lines = base::split_lines(text);
  if (lines.empty() || lines[0] != kMagic) return;
  for (std::string_view line : lines) {
    std::vector<std::string_view> words = base::split_words(line);
    if (words.size() == 2 && words[0] == "login") evidence.login = words[1];
    if (words.size() == 2 && words[0] == "cgroup") evidence.cgroups.emplace_back(words[1]);
    if (words.size() != 3 || (words[0] != "agent" && words[0] != "process")) continue;
    base::Result<int64_t> pid = base::parse_int(words[1], 2, INT32_MAX), start = base::parse_int(words[2], 1, INT64_MAX);
    if (!pid.ok() || !start.ok()) continue;
    evidence.family.insert({*pid, *start});
    if (words[0] == "agent") evidence.since_ticks = evidence.since_ticks == 0 ? *start : std::min(evidence.since_ticks, *start);
  }
}

}  // namespace

void FamilyRecord::write(const std::string& folder, const std::string& cgroup) {
  std::string text = fmt::format("{}\nagent {} {}\n", kMagic, ::getpid(), start_of(::getpid()));
  if (int64_t guard = start_of(::getppid()); guard > 0 && ::getppid() > 1) text += fmt::format("process {} {}\n", ::getppid(), guard);
  base::Result<std::string> groups = os::read_file("/proc/self/cgroup", 64 << 10);
  if (std::string login = groups.ok() ? machine::login_cgroup(*groups) : ""; !login.empty()) text += "login " + login + "\n";
  if (!cgroup.empty() && cgroup.find_first_of(" \t\n") == std::string::npos) text += "cgroup " + cgroup + "\n";
  for (const os::ProcessInfo& p : os::descendants(::getpid())) text += fmt::format("process {} {}\n", p.pid, p.start);
  if (text == written_ || text.size() > kMostBytes) return;
  if (os::write_file_atomic(folder + kFile, text, 0600, os::Durable::kNo).ok()) written_ = std::move(text);
}

machine::RunEvidence read_family_records(const std::string& run_id) {
  machine::RunEvidence evidence;
  for (const std::string& folder : scratches_of(run_id)) take(read_left_file(folder + kFile, kMostBytes), evidence);
  return evidence;
}

}  // namespace phalanx::agent
