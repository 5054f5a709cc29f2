#include "hosts/connect/ssh_environment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/glob.h"
#include "base/text.h"
#include "os/apart.h"
#include "os/capture.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::hosts {
namespace {

constexpr std::string_view kSuffix = ".environment";
constexpr size_t kMostBytes = 64 << 10;
constexpr std::chrono::milliseconds kPatience{5000};
constexpr const char* kOnlySsh = "only ssh\n";  // no pattern has a space

// The first line: for which connection the rest holds.
std::string head_of(const std::string& socket) {
  struct stat s{};
  if (::lstat(socket.c_str(), &s) != 0) return {};
  return fmt::format("1 {}.{}.{}", s.st_ino, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

// Of what `ssh -G` prints: a pattern a line.
std::string patterns_of(std::string_view printed) {
  std::string patterns;
  int plain = 0;
  for (std::string_view line : base::split(printed, '\n')) {
    if (line == "forwardx11 no" || line == "forwardagent no") ++plain;  // each session asks for these
    if (line.starts_with("setenv ")) return kOnlySsh;
    if (!line.starts_with("sendenv ")) continue;
    const std::string_view pattern = base::trim(line.substr(8));
    if (pattern.empty()) continue;
    // To ssh a bracket is a bracket.
    if (pattern.find('[') != std::string_view::npos || !base::Glob::compile(pattern).ok()) return kOnlySsh;
    patterns += std::string(pattern) + "\n";
  }
  return plain == 2 ? patterns : kOnlySsh;
}

}  // namespace

void forget_environment(const std::string& socket) { ::unlink((socket + std::string(kSuffix)).c_str()); }

void forget_ended(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    const size_t suffix = name.find(kSuffix);  // or of a file that was to get this name
    if (suffix != std::string::npos && !os::exists(folder + "/" + name.substr(0, suffix))) ::unlink((folder + "/" + name).c_str());
  }
}

Offered offered_environment(const std::string& socket) {
  base::Result<std::optional<os::Fd>> file = os::open_regular_if_present(socket + std::string(kSuffix));
  if (!file.ok() || !*file) return {};
  base::Result<std::string> text = os::read_rest(**file, socket, kMostBytes);
  const std::string head = head_of(socket);
  if (!text.ok() || head.empty() || !text->ends_with('\n') || !text->starts_with(head + "\n")) return {};
  const std::string_view rest = std::string_view(*text).substr(head.size() + 1);
  Offered offered{.known = true};
  if (rest == kOnlySsh) return offered;
  std::vector<base::Glob> patterns;
  for (std::string_view line : base::split_lines(rest))
    if (base::Result<base::Glob> pattern = base::Glob::compile(line); pattern.ok()) patterns.push_back(std::move(*pattern));
  offered.environment.emplace();
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, std::string_view(*variable).find('='));
    if (std::any_of(patterns.begin(), patterns.end(), [&](const base::Glob& pattern) { return pattern.matches(name); }))
      offered.environment->emplace_back(*variable);
  }
  return offered;
}

void learn_environment(const std::string& socket, std::vector<std::string> arguments) {
  const std::string path = os::environment_value("PATH", "/usr/bin:/bin");
  base::Result<std::string> program = os::find_program(arguments.front(), path, "");
  const os::Fd here(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!program.ok() || !here.valid()) return;
  (void)os::fork_apart("phalanx-ssh-env", {here.get()}, [&] {
    (void)!::nice(10);
    if (::fchdir(here.get()) != 0) return;
    forget_ended(socket.substr(0, socket.rfind('/')));
    os::CaptureSpec ssh;
    ssh.program = *program;
    ssh.arguments = std::move(arguments);
    ssh.arguments.insert(ssh.arguments.begin() + 1, "-G");
    for (char** variable = environ; *variable; ++variable) ssh.environment.emplace_back(*variable);
    ssh.deadline = kPatience;
    const std::string head = head_of(socket);
    const os::Captured said = os::capture(ssh);
    if (head.empty() || said.exit_code < 0) return;  // it may answer the next time
    (void)os::write_file_atomic(socket + std::string(kSuffix),
                                head + "\n" + (said.fault.empty() ? patterns_of(said.output) : std::string(kOnlySsh)), 0600,
                                os::Durable::kNo);
  });
}

}  // namespace phalanx::hosts
