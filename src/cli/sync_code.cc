#include "cli/sync_code.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/name_ranges.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/folder_here.h"
#include "cli/launch.h"
#include "cli/records/check_memory.h"
#include "cli/records/runs.h"
#include "os/clock.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;
using words::tr;

constexpr os::milliseconds kQuietUntil{2000};

void say(const std::string& text) { std::fputs(("phalanx: " + base::printable_lines(text) + "\n").c_str(), stderr); }

// The ranks' directory within the one that is copied: "" or "/sub".
base::Result<std::string> place_within(const std::string& root, const std::string& directory) {
  if (directory == root) return std::string();
  const std::string above = root == "/" ? root : root + "/";
  if (!directory.starts_with(above))
    return base::fail(ErrorKind::kUsage, fmt::format("the working directory {} is not in {}, which --sync copies", directory, root))
        .with_hint("start in that directory, or name one that contains both with --sync=DIR");
  return "/" + directory.substr(above.size());
}

void report_progress(base::Language language, const std::vector<job::CopyState>& hosts) {
  uint64_t sent = 0, total = 0;
  for (const job::CopyState& host : hosts) {
    sent += host.sent;
    total += host.total;
  }
  if (total > 0) say(tr(language, "copying the code: {} of {} sent", base::format_bytes(sent), base::format_bytes(total)));
}

std::vector<std::string> names_of(const std::vector<job::CopiedHost>& hosts) {
  std::vector<std::string> names;
  for (const job::CopiedHost& host : hosts) names.push_back(host.name);
  return names;
}

// A spare whose copy failed is none; one that has its copy stands in for a host that could not be reached.
base::Status settle_hosts(job::Job& job, std::vector<job::CopiedHost>& copied, base::Language language) {
  const size_t wanted = job.hosts.size();
  std::vector<job::HostRequest> spares;
  std::vector<job::CopiedHost> good;
  for (size_t s = 0; s < job.spares.size(); ++s) {
    job::CopiedHost& host = copied[wanted + s];
    if (host.error) say(tr(language, "warning: the spare host {} is left out: {}", host.name, host.error->message));
    else spares.push_back(job.spares[s]);
  }
  std::vector<size_t> going;
  for (size_t h = 0; h < wanted; ++h) {
    job::CopiedHost& host = copied[h];
    if (!host.error) continue;
    if (host.unreachable && spares.empty() && job.least_hosts > 0 && wanted - going.size() > static_cast<size_t>(job.least_hosts)) {
      say(tr(language, "warning: the run continues without {}: {}", host.name, host.error->message));
      going.push_back(h);
      continue;
    }
    if (!host.unreachable || spares.empty()) return std::move(*host.error);
    say(tr(language, "warning: {} takes the place of {}: {}", spares.front().target.name, host.name, host.error->message));
    job.hosts[h] = spares.front();
    spares.erase(spares.begin());
  }
  for (auto h = going.rbegin(); h != going.rend(); ++h) job.hosts.erase(job.hosts.begin() + static_cast<ptrdiff_t>(*h));
  job.spares = std::move(spares);
  for (job::CopiedHost& host : copied)
    if (!host.error) good.push_back(std::move(host));
  copied = std::move(good);
  return base::ok();
}

base::Status check_paths(const std::vector<job::CopiedHost>& hosts) {
  for (const job::CopiedHost& host : hosts)
    if (host.path != hosts.front().path)
      return base::fail(ErrorKind::kUnfit, "the copies would lie in different directories, and all ranks start in the same one")
          .because(fmt::format("{} on {}, {} on {}", hosts.front().path, hosts.front().name, host.path, host.name))
          .with_hint("log in as users with the same home directory, or set XDG_CACHE_HOME to one path in the login of every host");
  return base::ok();
}

void say_what_was_copied(const SyncedCode& code, const sync::Scan& scan, base::Language language) {
  uint64_t files = 0, bytes = 0;
  os::nanoseconds longest{};
  for (const job::CopiedHost& host : code.hosts) {
    files = std::max(files, host.files);
    bytes = std::max(bytes, host.bytes);
    longest = std::max(longest, host.took);
  }
  const std::vector<std::string> names = names_of(code.hosts);
  say(tr(language, "copied {} ({} files, {}) to {}: at most {} files, {} sent to a host, {}; the ranks start in {}", code.root, code.files,
         base::format_bytes(code.bytes), base::join(base::fold_names(names), ","), files, base::format_bytes(bytes),
         base::format_duration(longest), code.path));
  if (scan.links_outside + scan.special > 0)
    say(tr(language, "left out: {} symbolic links that lead outside, {} special files; the first is {}", scan.links_outside, scan.special,
           scan.left_out));
}

struct Code {
  std::string root;    // the directory to copy
  std::string within;  // the ranks' directory in it: "" or "/sub"
  sync::Scan scan;
};

base::Result<Code> look_at_code(const job::Job& job, const RunOptions& options) {
  TRY_ASSIGN(const std::string directory, real_path(job.directory));
  Code code;
  base::Result<std::string> root = real_path(options.sync_directory.empty() ? os::current_folder() : options.sync_directory);
  if (!root.ok()) return std::move(root).error().with_hint("name a directory that exists: --sync=DIR, or sync: . in the project file");
  code.root = *std::move(root);
  TRY_ASSIGN(code.within, place_within(code.root, directory));
  TRY(holds_no_home(code.root, "--sync"));
  sync::ScanLimits limits;
  if (options.sync_max) {
    limits.bytes = static_cast<uint64_t>(*options.sync_max);
    limits.files = sync::kMostEntries;
  }
  TRY_ASSIGN(code.scan, sync::scan(code.root, limits, index_file(code.root, "")));
  return code;
}

}  // namespace

base::Status plan_code(job::Job& job, const RunOptions& options) {
  TRY_ASSIGN(const Code code, look_at_code(job, options));
  // By its real path, and as the job's directory is written, where a link leads to it.
  const bool shown = job.directory.ends_with(code.within);
  const std::string written = shown ? job.directory.substr(0, job.directory.size() - code.within.size()) : code.root;
  auto paths = std::make_shared<std::set<std::string>>();
  for (const std::string& root : {code.root, written}) {
    paths->insert(root);
    for (const sync::Entry& entry : code.scan.manifest.entries) paths->insert(root + "/" + entry.path);
  }
  job.to_copy = std::move(paths);
  if (!options.quiet)
    say(tr(language_here(), "a run would copy {} ({} files, {}) to every host first; nothing was copied now", code.root,
           code.scan.manifest.files(), base::format_bytes(code.scan.manifest.bytes())));
  return base::ok();
}

base::Result<SyncedCode> sync_code(job::Job& job, const RunOptions& options) {
  const base::Language language = language_here();
  SyncedCode code;
  TRY_ASSIGN(const Code found, look_at_code(job, options));
  const sync::Scan& scan = found.scan;
  code.root = found.root;
  code.files = scan.manifest.files();
  code.bytes = scan.manifest.bytes();
  TRY_ASSIGN(code.name, new_copy_name());
  std::vector<hosts::Target> targets;
  for (const std::vector<job::HostRequest>* list : {&job.hosts, &job.spares})
    for (const job::HostRequest& host : *list) targets.push_back(host.target);
  const os::Mono began = os::mono_now();
  auto progress = [&](const std::vector<job::CopyState>& hosts) {
    if (!options.quiet && os::mono_now() - began > kQuietUntil) report_progress(language, hosts);
  };
  job::CopyRequest request{code.name, code.root, &scan.manifest, progress, job.hosts.size()};
  request.last_list = index_file(code.root, "list");
  TRY_ASSIGN(code.hosts, copy_to_hosts(targets, options, std::move(request)));
  const auto cut_short = std::find_if(code.hosts.begin(), code.hosts.end(), [](const job::CopiedHost& host) {
    return host.error && host.error->kind == ErrorKind::kInterrupted;
  });
  for (size_t h = 0; h < targets.size(); ++h)
    if (!code.hosts[h].error || (cut_short != code.hosts.end() && !code.hosts[h].unreachable)) code.targets.push_back(targets[h]);
  base::Status settled = cut_short == code.hosts.end() ? settle_hosts(job, code.hosts, language) : base::Status(*cut_short->error);
  if (settled.ok()) settled = check_paths(code.hosts);
  if (!settled.ok()) {
    release_code(code, options);
    return std::move(settled).error();
  }
  code.path = code.hosts.front().path;
  job.directory = code.path + found.within;
  if (!options.quiet) say_what_was_copied(code, scan, language);
  return code;
}

void release_code(const SyncedCode& code, const RunOptions& options) {
  if (code.targets.empty()) return;
  base::Result<std::vector<job::CopiedHost>> released = copy_to_hosts(code.targets, options, {code.name, code.root, nullptr});
  if (!released.ok()) return;
  std::vector<std::string> written;
  for (const job::CopiedHost& host : *released)
    if (!host.error && host.kept) written.push_back(host.name);
  if (!written.empty() && !options.quiet)
    say(tr(language_here(), "the run wrote into its copy, which stays for 30 days after its last use: {} on {}", code.path,
           base::join(base::fold_names(written), ",")));
}

base::Json describe(const SyncedCode& code) {
  base::Json hosts = base::Json::array();
  for (const job::CopiedHost& host : code.hosts)
    hosts.push_back({{"host", host.name},
                     {"files", host.files},
                     {"bytes", host.bytes},
                     {"list_bytes", host.list_bytes},
                     {"seconds", static_cast<double>(host.took.count()) / 1e9}});
  return {{"directory", code.root}, {"copy", code.path}, {"files", code.files}, {"bytes", code.bytes}, {"hosts", std::move(hosts)}};
}

}  // namespace phalanx::cli
