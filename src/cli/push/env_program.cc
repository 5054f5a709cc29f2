#include "cli/push/env_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/push/push_hosts.h"
#include "cli/records/check_memory.h"
#include "os/files.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;

constexpr const char* kProgram = "phalanx-env";
constexpr size_t kMostProgramBytes = 64 << 20;

}  // namespace

std::string script_of(const std::vector<job::CopiedHost>& hosts, const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> by_path;
  for (size_t h = 0; h < hosts.size(); ++h) by_path[hosts[h].path] += (by_path[hosts[h].path].empty() ? "" : "|") + std::to_string(h);
  std::string script = "case $NODE_RANK in ";
  for (const auto& [path, hosts_of] : by_path) script += hosts_of + ") d=" + base::shell_quote(path) + ";; ";
  script += fmt::format("*) exit 127;; esac; [ -O \"$d/{0}\" ] && [ -x \"$d/{0}\" ] || exit 127; exec \"$d/{0}\"", kProgram);
  for (const std::string& argument : arguments) script += " " + base::shell_quote(argument);
  return script;
}

namespace {

// What is run on hosts lies below their copies, which only their user can change.
base::Result<std::vector<job::CopiedHost>> send_program(const std::vector<hosts::Target>& targets, const RunOptions& options) {
  TRY_ASSIGN(const std::string path, find_env_program());
  TRY_ASSIGN(const std::string program, os::read_file(path, kMostProgramBytes));
  base::Sha256 hash;
  hash.update(program);
  sync::Aside aside;
  aside.file = os::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string digest = hash.bytes();
  aside.at.emplace(digest, 0);
  sync::Manifest manifest;
  manifest.entries.push_back({.path = kProgram, .kind = sync::Kind::kProgram, .size = program.size(), .content = digest});
  job::CopyRequest request{fmt::format("{}-{}", kProgram, base::sha256_hex(digest).substr(0, 32)), "/", &manifest};
  request.aside = &aside;
  return copy_to_hosts(targets, options, std::move(request));
}

}  // namespace

base::Result<std::string> find_env_program() {
  const std::string self = os::self_executable();
  const std::string beside = self.substr(0, self.rfind('/') + 1) + kProgram;
  if (os::exists(beside)) return beside;
  base::Result<std::string> found = os::find_program(kProgram, os::environment_value("PATH"), os::current_folder());
  if (found.ok()) return found;
  return base::fail(ErrorKind::kUnfit, "phalanx env needs the program phalanx-env, which is missing")
      .because(fmt::format("it is neither beside {} nor in PATH", self))
      .with_hint(fmt::format("copy phalanx-env of the same package to {}", beside));
}

base::Result<int> run_env_program(std::vector<std::string> arguments, const std::vector<std::pair<int, int>>& fds) {
  os::SpawnSpec spec;
  TRY_ASSIGN(spec.program, find_env_program());
  spec.arguments = std::move(arguments);
  spec.arguments.insert(spec.arguments.begin(), kProgram);
  for (char** one = environ; *one; ++one) spec.environment.emplace_back(*one);
  spec.fds = fds;
  spec.fds.emplace_back(STDERR_FILENO, STDERR_FILENO);
  spec.new_session = false;
  spec.death_signal = SIGTERM;
  TRY_ASSIGN(const pid_t pid, os::spawn(spec));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return base::system_error("waitpid", kProgram);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return base::fail(ErrorKind::kInternal, fmt::format("{} was killed by {}", kProgram, os::signal_name(WTERMSIG(status))));
}

base::Result<OnceAnswers> run_env_program_on_hosts(const std::vector<hosts::Target>& targets, const RunOptions& options,
                                                   const std::vector<std::string>& arguments) {
  TRY_ASSIGN(const std::vector<job::CopiedHost> hosts, send_program(targets, options));
  OnceAnswers answers;
  answers.errors = folded_errors(hosts);
  if (!answers.errors.empty()) return answers;
  RunOptions there = options;
  there.workdir = "/";
  there.no_export = true;
  for (const char* name : {"PHALANX_LANG", "LC_ALL", "LC_MESSAGES", "LANG"})
    if (const std::string value = os::environment_value(name); !value.empty()) there.env.emplace_back(name, value);
  TRY_ASSIGN(OnceAnswers said, run_once_per_host(std::move(there), {"/bin/sh", "-c", script_of(hosts, arguments)}));
  for (size_t h = 0; h < said.hosts.size(); ++h)
    if (h >= hosts.size() || said.hosts[h].host != hosts[h].name)
      return base::fail(ErrorKind::kInternal, "hosts were asked in another order than copied to");
  return said;
}

base::Result<os::Fd> nameless_file() {
  std::string folder = cache_folder();
  if (folder.empty() || !os::make_folders(folder).ok() || !os::private_folder(folder)) folder = os::environment_value("TMPDIR", "/tmp");
  std::string path = folder + "/phalanx-new.XXXXXX";
  os::Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) return base::system_error("create a file in", folder);
  (void)::unlink(path.c_str());
  return file;
}

}  // namespace phalanx::cli
