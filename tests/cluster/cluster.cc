#include "cluster.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/text.h"
#include "base/try.h"
#include "cgroup.h"
#include "guard.h"
#include "host_init.h"
#include "state.h"
#include "tool.h"

namespace phalanx::testbed {

namespace {

std::string fresh_name() {
  static int count = 0;
  return fmt::format("t{}-{}", ::getpid(), ++count);
}

// What /proc says; nothing for a zombie or a process that has just gone.
std::optional<HostProcess> describe(pid_t pid) {
  auto status = read_text(fmt::format("/proc/{}/status", pid));
  auto command = read_text(fmt::format("/proc/{}/cmdline", pid));
  if (!status.ok() || !command.ok()) return std::nullopt;
  HostProcess process;
  process.pid = pid;
  for (auto line : base::split_lines(*status)) {
    auto fields = base::split_words(line);
    if (fields.size() < 2) continue;
    if (fields[0] == "Name:") process.name = std::string(base::trim(line.substr(5)));
    if (fields[0] == "PPid:") process.parent = std::atoi(std::string(fields[1]).c_str());
    if (fields[0] == "State:" && (fields[1] == "Z" || fields[1] == "X")) return std::nullopt;
  }
  process.command = *command;
  for (char& c : process.command) {
    if (c == '\0') c = ' ';
  }
  process.command = std::string(base::trim(process.command));
  return process;
}

}  // namespace

base::Result<Cluster> Cluster::up(const Options& options) {
  if (auto reason = unavailable()) return base::fail(base::ErrorKind::kUnfit, "no test cluster here").because(*reason);
  Options full = options;
  if (full.name.empty()) full.name = fresh_name();
  if (full.owner == 0) full.owner = ::getpid();
  sweep();
  TRY(start_guard(full));
  Cluster cluster(full.name);
  cluster.owned_ = full.owner == ::getpid();
  return cluster;
}

base::Result<Cluster> Cluster::attach(const std::string& name) {
  if (::access(state_path(name, "control").c_str(), F_OK) != 0) return base::fail(base::ErrorKind::kUsage, "no cluster named " + name);
  return Cluster(name);
}

Cluster::Cluster(Cluster&& other) noexcept : name_(std::move(other.name_)), owned_(std::exchange(other.owned_, false)) {}

Cluster& Cluster::operator=(Cluster&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(owned_, other.owned_);
  return *this;
}

Cluster::~Cluster() {
  if (owned_) (void)down();
}

base::Status Cluster::down() {
  owned_ = false;
  return ask_guard("down");
}

base::Status Cluster::ask_guard(const std::string& request) const {
  os::Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(address.sun_path, sizeof address.sun_path - 1, "{}", state_path(name_, "control"));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return base::system_error("connect", name_);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return base::system_error("send", name_);
  char text[2048];
  ssize_t n = ::recv(fd.get(), text, sizeof text, 0);
  std::string reply(text, n > 0 ? static_cast<size_t>(n) : 0);
  if (reply == "ok") return base::ok();
  return base::fail(base::ErrorKind::kInternal, request + " failed").because(reply.empty() ? "the guard is gone" : reply);
}

std::vector<std::string> Cluster::hosts() const {
  std::vector<std::string> names;
  auto text = read_text(state_path(name_, "hosts"));
  if (!text.ok()) return names;
  for (auto line : base::split_lines(*text)) names.emplace_back(base::split_words(line)[0]);
  names.erase(names.begin());  // ctl
  return names;
}

base::Result<std::string> Cluster::address(const std::string& host) const {
  TRY_ASSIGN(std::string text, read_text(state_path(name_, "hosts")));
  for (auto line : base::split_lines(text)) {
    auto fields = base::split_words(line);
    if (fields[0] == host) return std::string(fields[1]);
  }
  return base::fail(base::ErrorKind::kUsage, "no host named " + host);
}

base::Result<pid_t> Cluster::init_of(const std::string& host) const {
  auto text = read_text(state_path(name_, host + ".pid"));
  if (text.ok()) return static_cast<pid_t>(std::atoi(text->c_str()));
  return base::fail(base::ErrorKind::kUnreachable, host + " is off, or no host of cluster " + name_);
}

base::Result<Process> Cluster::start_on(const std::string& host, Command command) const {
  TRY_ASSIGN(pid_t init, init_of(host));
  TRY_ASSIGN(std::string cgroup, host_cgroup(name_, host));
  return start_process(init, cgroup, std::move(command));
}

Outcome Cluster::run_on(const std::string& host, Command command, milliseconds deadline) const {
  auto process = start_on(host, std::move(command));
  if (process.ok()) return process->finish(deadline);
  Outcome outcome;
  outcome.exit_code = 255;
  outcome.err = process.error().render();
  return outcome;
}

std::vector<HostProcess> Cluster::processes(const std::string& host) const {
  std::vector<HostProcess> found;
  auto cgroup = host_cgroup(name_, host);
  auto init = init_of(host);
  if (!cgroup.ok()) return found;
  for (pid_t pid : cgroup_pids(*cgroup)) {
    auto process = describe(pid);
    if (!process) continue;
    bool listener = process->name == "sshd" && process->command.find("[listener]") != std::string::npos;
    if (!listener && !(init.ok() && pid == *init)) found.push_back(*process);
  }
  return found;
}

int Cluster::kill_processes(const std::string& host, const std::string& text, int signal) const {
  int count = 0;
  for (const auto& process : processes(host)) {
    bool match = process.name == text || process.command.find(text) != std::string::npos;
    if (match && ::kill(process.pid, signal) == 0) ++count;
  }
  return count;
}

std::vector<std::string> sweep() {
  std::vector<std::string> removed;
  auto all = lock_all_states();
  DIR* folder = all.ok() ? ::opendir(kStateRoot) : nullptr;
  if (folder == nullptr) return removed;
  while (dirent* entry = ::readdir(folder)) {
    std::string name = entry->d_name;
    if (name[0] == '.') continue;
    auto lock = lock_state(name);
    if (!lock.ok()) continue;
    // Its guard is dead, and so are its hosts, unless they are frozen: a frozen group hears only cgroup.kill.
    auto cgroup = host_cgroup(name, {});
    if (cgroup.ok()) {
      (void)kill_cgroup(*cgroup);
      remove_cgroup(*cgroup);
    }
    remove_folder(state_path(name));
    removed.push_back(name);
  }
  ::closedir(folder);
  return removed;
}

}  // namespace phalanx::testbed
