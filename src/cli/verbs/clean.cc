// clean: what Phalanx has left on this machine, or on hosts: old builds, records of ended runs, shared ssh connections. Shows it first.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "agent/clean_builds.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/agent_image.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/once_per_host.h"
#include "cli/records/runs.h"
#include "hosts/connect/kept_connections.h"
#include "hosts/connect/openssh.h"
#include "hosts/connect/ssh_environment.h"
#include "logs/runs/old_runs.h"
#include "os/clock.h"
#include "os/files.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using words::Text;
using words::tr;

constexpr Text kOldBuild{"old build"};
constexpr Text kOldCopy{"copied code"};
constexpr size_t kKeptRuns = 20;

// One thing that was found. problem: why it could not be removed.
struct Found {
  Text what;
  std::string path;
  std::string problem;
};

// What was removed, or what would be.
std::string shown(const std::vector<Found>& all, bool remove, base::Language language) {
  std::string out;
  size_t found = 0;
  for (const Found& one : all) {
    found += one.problem.empty() ? 1 : 0;
    out += one.problem.empty() ? fmt::format("{}  {}\n", base::pad_right(one.what.in(language), 14), one.path)
                               : fmt::format("  {}: {}\n", one.path, one.problem);
  }
  if (all.empty()) out = tr(language, "nothing to remove\n");
  else if (!remove && found > 0) out += tr(language, "nothing was removed; phalanx clean --yes removes these\n");
  return base::printable_lines(out);
}

class Clean {
 public:
  Clean(bool remove, base::Language language) : remove_(remove), language_(language) {}

  void builds() {
    agent::clean_builds(agent_image().build, remove_,
                        [&](const std::string& path, const std::string& problem) { found_.push_back({kOldBuild, path, problem}); });
  }

  void copies() {
    agent::clean_copies(remove_, [&](const std::string& path, const std::string& problem) { found_.push_back({kOldCopy, path, problem}); });
  }

  void runs(const std::string& folder, size_t kept) {
    logs::Keeping keeping;
    keeping.runs = keeping.whatever_age = kept;
    keeping.list_only = !remove_;
    logs::remove_old_runs(folder, "", keeping, os::wall_now_ns(),
                          [&](const std::string& id, const std::string&, const std::string& problem) {
                            found_.push_back({Text{"ended run"}, folder + "/" + id, problem});
                            return true;
                          });
  }

  void connections() {
    const std::string ssh = os::environment_value("PHALANX_SSH", "ssh");
    for (const std::string& socket : hosts::kept_connections()) {
      const bool closed = remove_ && hosts::close_kept_connection(ssh, socket);
      found_.push_back(
          {Text{"ssh connection"}, socket, !remove_ || closed ? "" : tr(language_, "it is still in use, and ends with its last session")});
    }
    if (const std::string folder = hosts::control_folder(); remove_ && !folder.empty()) hosts::forget_ended(folder);
  }

  int finish() {
    const std::string out = shown(found_, remove_, language_);
    std::fwrite(out.data(), 1, out.size(), stdout);
    return std::any_of(found_.begin(), found_.end(), [](const Found& one) { return !one.problem.empty(); }) ? 1 : 0;
  }

 private:
  bool remove_;
  base::Language language_;
  std::vector<Found> found_;
};

// The same on every host, by the program that the login there has started. Only its builds and copied code: runs and connections belong to
// the user's sessions on that machine.
base::Result<int> clean_hosts(RunOptions options, bool remove) {
  options.workdir = "/";  // what this is typed in need not exist there
  std::vector<std::string> command = {"agent", "clean"};
  if (remove) command.emplace_back("--yes");
  TRY_ASSIGN(OnceAnswers answers, run_once_per_host(options, std::move(command), true));
  for (HostAnswer& host : answers.hosts) {
    if (host.exit_code != 0 && host.exit_code != 1) continue;  // what it says is no list
    std::vector<Found> found;
    for (std::string_view line : base::split_lines(host.output)) {
      const size_t tab = std::min(line.find('\t'), line.size());
      const std::string path(line.substr(0, tab));
      const bool copy = path.find("/sync/") != std::string::npos;
      found.push_back({copy ? kOldCopy : kOldBuild, path, std::string(line.substr(std::min(tab + 1, line.size())))});
    }
    host.output = shown(found, remove, language_here());
  }
  for (const base::Error& error : answers.errors) std::fputs(words::render(error, language_here()).c_str(), stderr);
  const std::string out = folded_answers(answers.hosts, language_here());
  std::fwrite(out.data(), 1, out.size(), stdout);
  return answers.errors.empty() ? exit_code_of(answers.hosts) : base::exit_code(answers.errors.front().kind);
}

}  // namespace

base::Result<int> clean_verb(const Invocation& invocation) {
  TRY_ASSIGN(const RunOptions options, run_options(invocation));
  const bool remove = invocation.has(Flag::kYes), cache_only = invocation.has(Flag::kCacheOnly), all = invocation.has(Flag::kCleanAll);
  if (!options.hosts.empty() || !options.hostfile.empty()) return clean_hosts(options, remove);
  Clean clean(remove, language_here());
  clean.builds();
  clean.copies();
  if (cache_only) return clean.finish();
  TRY_ASSIGN(const std::string folder, runs_folder(invocation));
  // The newest one is always kept, like the one that `latest` names. 0: all are kept, as everywhere.
  const auto given = invocation.value(Flag::kKeepRuns);
  const size_t kept = all ? 1 : given ? static_cast<size_t>(int_value(*given)) : kKeptRuns;
  if (kept > 0) clean.runs(folder, kept);
  clean.connections();
  return clean.finish();
}

}  // namespace phalanx::cli
