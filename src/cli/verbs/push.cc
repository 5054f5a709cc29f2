// push: a directory to a path on every host (job/copy/copy_to_hosts.h; the far side is sync/place.h).
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/folder_here.h"
#include "cli/launch.h"
#include "cli/push/progress.h"
#include "cli/push/push_hosts.h"
#include "cli/records/runs.h"
#include "os/files.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;
using words::tr;

void say(const std::string& text) { std::fputs(("phalanx: " + base::printable_lines(text) + "\n").c_str(), stderr); }

// Without "." and empty names; a link in it stays, since the host may have another. Error: kUsage.
base::Result<std::string> plain_path(std::string_view path) {
  std::string plain;
  for (std::string_view name : base::split(path, '/')) {
    if (name == ".." || !path.starts_with('/') || path.size() > sync::kMostPathBytes)
      return base::fail(ErrorKind::kUsage, fmt::format("--to {} is not an absolute path without ..", base::quote(path)));
    if (!name.empty() && name != ".") plain += "/" + std::string(name);
  }
  if (plain.empty()) return base::fail(ErrorKind::kUsage, "the root directory cannot be pushed to").with_hint("name another one with --to");
  return plain;
}

void say_what_is_special(const sync::Scan& scan, base::Language language) {
  if (scan.special > 0) say(tr(language, "left out: {} sockets, pipes or devices; the first is {}", scan.special, scan.left_out));
  if (scan.links_outside > 0)
    say(tr(language, "symbolic links that lead outside the directory are copied as they are, not what they lead to: {}",
           scan.links_outside));
}

}  // namespace

base::Result<int> push_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  const base::Language language = language_here();
  TRY_ASSIGN(
      const std::vector<hosts::Target> targets,
      targets_of(options, "push needs hosts", fmt::format("phalanx push {} <host>,<host>", base::shell_quote(options.push_directory))));
  TRY_ASSIGN(const std::string root, real_path(options.push_directory));
  TRY(holds_no_home(root, "push"));
  const bool as_typed = options.push_directory.starts_with('/') && options.push_directory.find("..") == std::string::npos;
  TRY_ASSIGN(const std::string path, plain_path(!options.push_to.empty() ? options.push_to : as_typed ? options.push_directory : root));
  PushProgress progress(language, ::isatty(STDERR_FILENO) == 1, options.quiet);
  TRY_ASSIGN(const sync::Scan scan, sync::scan(root, sync::kPushLimits, index_file(root, "push"), sync::Take::kEverything,
                                               [&](uint64_t bytes) { progress.read(bytes); }));
  progress.clear();
  if (!options.quiet) say_what_is_special(scan, language);
  TRY_ASSIGN(const std::string name, new_copy_name());
  job::CopyRequest request{name, root, &scan.manifest};
  request.progress = [&](const std::vector<job::CopyState>& hosts) { progress.sent(hosts, os::mono_now()); };
  request.target = {path, scan.mode, options.push_delete, invocation.has(Flag::kYes)};
  TRY_ASSIGN(const std::vector<job::CopiedHost> hosts, copy_to_hosts(targets, options, std::move(request)));
  progress.clear();
  const std::string out =
      options.json ? base::to_text(push_json(root, scan.manifest, hosts), 2) + "\n" : base::printable_lines(push_table(hosts, language));
  std::fwrite(out.data(), 1, out.size(), stdout);
  const std::vector<base::Error> errors = folded_errors(hosts);
  for (const base::Error& error : errors) std::fputs(words::render(error, language).c_str(), stderr);
  return errors.empty() ? 0 : base::exit_code(errors.front().kind);
}

}  // namespace phalanx::cli
