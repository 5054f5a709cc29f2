#include "machine/ranks/run_processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/own_cgroup.h"
#include "machine/ranks/process_table.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostAncestors = 64;
constexpr int64_t kKernelThreadParent = 2;  // parent of them all

std::vector<int64_t> own_line(const std::string& root) {
  std::vector<int64_t> line;
  if (!root.empty()) return line;
  ProcessStat stat;
  for (int64_t pid = ::getpid(); pid > 1 && line.size() < kMostAncestors && read_stat(root, pid, stat); pid = stat.parent)
    line.push_back(pid);
  return line;
}

// An agent or its guard, by the scratch folder it holds open.
bool holds_scratch(const std::string& root, int64_t pid, const std::string& run_id) {
  std::string folder = root + "/proc/" + std::to_string(pid) + "/fd";
  DIR* fds = ::opendir(folder.c_str());
  if (!fds) return false;
  bool found = false;
  while (dirent* entry = found ? nullptr : ::readdir(fds)) {
    char target[PATH_MAX];
    ssize_t n = ::readlink((folder + "/" + entry->d_name).c_str(), target, sizeof(target));
    found = n > 0 && std::string_view(target, static_cast<size_t>(n)).find("/phalanx-run-" + run_id + "-") != std::string_view::npos;
  }
  ::closedir(fds);
  return found;
}

// The real user, which /proc/<pid>/status tells of every process; the owner of /proc/<pid> is root where a process is not dumpable.
bool of_this_user(const std::string& root, int64_t pid) {
  base::Result<std::string> status = os::read_file(fmt::format("{}/proc/{}/status", root, pid), 16 << 10);
  if (!status.ok()) return false;
  size_t at = status->find("\nUid:");
  if (at == std::string::npos) return false;
  std::vector<std::string_view> fields = base::split_words(std::string_view(*status).substr(at + 5, 80));
  return !fields.empty() && fields[0] == std::to_string(::getuid());
}

enum class Environment { kOfRun, kOther, kNone, kUnreadable };

Environment look_at_environment(const std::string& root, int64_t pid, const std::string& run_id) {
  base::Result<std::string> text = os::read_file(fmt::format("{}/proc/{}/environ", root, pid), 1 << 20);
  if (!text.ok()) return Environment::kUnreadable;
  bool any = false;
  for (std::string_view variable : base::split(*text, '\0')) {
    size_t equals = variable.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    any = true;
    if (variable.substr(0, equals) == kRunIdVariable && variable.substr(equals + 1) == run_id) return Environment::kOfRun;
  }
  return any ? Environment::kOther : Environment::kNone;
}

class Look {
 public:
  Look(const std::string& root, const std::string& run_id, const RunEvidence& evidence)
      : root_(root), run_id_(run_id), evidence_(evidence), own_(own_line(root)) {
    for (const std::string& cgroup : evidence.cgroups) {
      std::set<int64_t> inside = OwnCgroup::processes(cgroup);
      grouped_.insert(inside.begin(), inside.end());
    }
  }

  void visit(int64_t pid, const ProcessStat& stat) {
    ++visited_;
    if (stat.state == 'Z' || stat.state == 'X' || stat.parent == kKernelThreadParent || pid == kKernelThreadParent) return;
    if (std::find(own_.begin(), own_.end(), pid) != own_.end()) return;
    Environment environment = look_at_environment(root_, pid, run_id_);
    bool written = evidence_.family.count({pid, stat.start_ticks}) > 0;
    bool agent = stat.comm == "phalanx-agent" && holds_scratch(root_, pid, run_id_);
    others_.push_back({pid, stat, environment});
    if (environment == Environment::kOfRun || written || agent || grouped_.count(pid)) others_.back().ours = true;
  }

  RunLook end(bool whole, os::milliseconds budget) {
    add_relatives();
    std::map<int64_t, std::string> names;
    for (const Seen& seen : others_) names[seen.pid] = seen.stat.comm;
    for (Seen& seen : others_) seen.parent_name = names[seen.stat.parent];
    RunLook look;
    for (const Seen& seen : others_) {
      if (seen.ours) look.found.push_back({seen.pid, seen.stat.start_ticks, name_of(seen)});
      else if (doubtful(seen)) tell(look, {seen.pid, fmt::format("process {} ({}): {}", seen.pid, name_of(seen), why(seen))});
    }
    if (visited_ == 0 && whole) tell(look, {0, "/proc: it shows no process at all"});
    if (!whole)
      tell(look, {0, fmt::format("/proc: the look was not finished after {:.1f} s: the machine is busy", budget.count() / 1000.0)});
    return look;
  }

 private:
  struct Seen {
    int64_t pid;
    ProcessStat stat;
    Environment environment;
    bool ours = false;
    std::string parent_name = {};
  };

  // What has a parent of the run, and who is in a session that one of the run leads. A leader that is no more proves nothing: its pid may
  // have been another process's since.
  void add_relatives() {
    std::set<int64_t> parents, leaders;
    auto mark = [&](Seen& seen) {
      seen.ours = true;
      parents.insert(seen.pid);
      if (seen.stat.session == seen.pid) leaders.insert(seen.pid);
    };
    for (Seen& seen : others_)
      if (seen.ours) mark(seen);
    for (bool more = true; more;) {
      more = false;
      for (Seen& seen : others_)
        if (!seen.ours && (parents.count(seen.stat.parent) || leaders.count(seen.stat.session))) {
          mark(seen);
          more = true;
        }
    }
  }

  bool doubtful(const Seen& seen) const {
    bool silent = seen.environment == Environment::kNone || seen.environment == Environment::kUnreadable;
    if (!silent || evidence_.since_ticks == 0 || seen.stat.start_ticks < evidence_.since_ticks) return false;
    ProcessStat now;  // it may have ended meanwhile, which makes its environment unreadable too
    if (!read_stat(root_, seen.pid, now) || now.start_ticks != seen.stat.start_ticks || now.state == 'Z') return false;
    if (!of_this_user(root_, seen.pid) || !orphan(seen)) return false;
    if (evidence_.login.empty()) return true;
    base::Result<std::string> cgroup = os::read_file(fmt::format("{}/proc/{}/cgroup", root_, seen.pid), 64 << 10);
    std::string login = cgroup.ok() ? login_cgroup(*cgroup) : "";
    return login.empty() || login == evidence_.login;  // of another login: not ours
  }

  // A process of the run that is below none of the run's has lost its parent, and was given to init or to the user's systemd. All others
  // have a parent that started them: sshd, whose title is where its environment was, is asked about by nobody.
  static bool orphan(const Seen& seen) { return seen.stat.parent <= 1 || seen.parent_name == "systemd"; }

  static const char* why(const Seen& seen) {
    return seen.environment == Environment::kNone ? "it has overwritten its environment" : "its environment cannot be read";
  }
  std::string name_of(const Seen& seen) const {
    std::string command = command_line(root_, seen.pid);
    return command.empty() ? seen.stat.comm : command;
  }
  static void tell(RunLook& look, Unseen what) {
    if (look.unseen.size() < kMostUnseen) look.unseen.push_back(std::move(what));
  }

  const std::string& root_;
  const std::string& run_id_;
  const RunEvidence& evidence_;
  std::vector<int64_t> own_;
  std::set<int64_t> grouped_;  // in a group of the run
  std::vector<Seen> others_;
  size_t visited_ = 0;
};

}  // namespace

std::string login_cgroup(const std::string& cgroup_text) {
  for (std::string_view line : base::split_lines(cgroup_text)) {
    size_t path = line.find(":/");
    std::string_view last = line.substr(line.rfind('/') + 1);
    if (path != std::string_view::npos && last.starts_with("session-") && last.ends_with(".scope"))
      return std::string(line.substr(path + 1));
  }
  return "";
}

RunLook run_processes(const std::string& root, const std::string& run_id, const RunEvidence& evidence, os::milliseconds budget) {
  Look look(root, run_id, evidence);
  bool whole = each_process(root, budget, [&](int64_t pid, const ProcessStat& stat) {
    look.visit(pid, stat);
    return true;
  });
  return look.end(whole, budget);
}

}  // namespace phalanx::machine
