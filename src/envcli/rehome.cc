// rehome: the repair of an environment that was moved.
#include <functional>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envcli/output.h"
#include "envcli/verbs.h"
#include "envmove/rehome.h"
#include "envmove/votes.h"
#include "os/clock.h"
#include "words/message.h"

namespace phalanx::envcli {
namespace {

using base::ErrorKind;
using envmove::Environment;
using words::tr;

// interrupted: what the journal of the earlier one names is added to it (plan_rehome).
base::Result<envmove::Move> move_of(const Request& request, const Environment& environment, bool interrupted) {
  envmove::Move move{request.old_prefixes, environment.root};
  for (std::string& old : move.old_prefixes) {
    while (old.size() > 1 && old.ends_with('/')) old.pop_back();
    if (!old.starts_with('/') || old == "/")
      return base::fail(ErrorKind::kUsage, fmt::format("--old-prefix {} is no absolute path", base::quote(old)));
  }
  if (!move.old_prefixes.empty()) return move;
  std::vector<envmove::Candidate> candidates = envmove::vote(environment);
  move.old_prefixes = envmove::old_prefixes(environment, candidates);
  std::vector<std::string> others;
  for (const envmove::Candidate& one : envmove::elsewhere(environment, candidates)) others.push_back(one.prefix);
  if (move.old_prefixes.empty() && !others.empty() && !interrupted)
    return base::fail(ErrorKind::kConfig, "nobody can tell where the environment was before")
        .because(fmt::format("its files name {}", base::join(others, ", ")))
        .with_hint(fmt::format("phalanx env rehome {} --old-prefix {}", base::shell_quote(environment.root),
                               others.size() == 1 ? base::shell_quote(others.front()) : "PATH"));
  return move;
}

base::Error cannot_move(const envmove::Plan& plan, const Environment& environment) {
  return base::fail(ErrorKind::kConfig,
                    base::counted("{} files cannot be moved to {}; nothing was changed", plan.problems.size(), environment.root))
      .with_hint(fmt::format("move the environment to a shorter path, or repair the rest with phalanx env rehome --partial {}",
                             base::shell_quote(environment.root)));
}

void say_plan(const envmove::Plan& plan, const Environment& environment, bool whole, base::Language language) {
  std::string out;
  for (const std::string& old : plan.move.old_prefixes) out += tr(language, "former place: {}", old) + "\n";
  if (plan.resumed) out += tr(language, "an interrupted repair is continued") + "\n";
  std::vector<std::string> changed, problems;
  for (const envmove::Change& change : plan.changes) changed.push_back(change.path);
  for (const envmove::Problem& problem : plan.problems) problems.push_back(problem.path + ": " + problem.text);
  out += tr(language, "{} of {} files and links name it", plan.changes.size(), environment.files.size()) + "\n";
  if (whole) out += list_of(changed, true, "", language);
  if (!plan.untouched.empty())
    out += tr(language, "{} files of other formats name it as well and are left as they are:", plan.untouched.size()) + "\n" +
           list_of(plan.untouched, whole, "--dry-run", language);
  if (!problems.empty()) out += tr(language, "cannot be moved:") + "\n" + list_of(problems, whole, "--dry-run", language);
  print(stderr, out);
}

}  // namespace

base::Result<int> rehome(const Request& request, const Environment& environment) {
  const base::Language language = language_here();
  const bool all = request.dry_run;
  TRY_ASSIGN(bool interrupted, envmove::was_interrupted(environment.root));
  TRY_ASSIGN(envmove::Move move, move_of(request, environment, interrupted));
  if (move.old_prefixes.empty() && !interrupted) {
    print(stdout, tr(language, "{}: nothing to do, its files name no other place", environment.root) + "\n");
    return 0;
  }
  const os::Mono began = os::mono_now();
  envmove::Plan plan;
  {
    ProgressLine line(tr(language, "reading"), language);
    TRY_ASSIGN(plan, envmove::plan_rehome(environment, std::move(move), std::ref(line)));
  }
  if (plan.changes.empty() && plan.problems.empty() && !plan.resumed) {
    print(stdout, tr(language, "{}: nothing to do, no file names the former place", environment.root) + "\n");
    return 0;
  }
  say_plan(plan, environment, all, language);
  if (request.dry_run) return plan.problems.empty() ? 0 : base::exit_code(ErrorKind::kConfig);
  if (!plan.problems.empty() && !request.partial) return cannot_move(plan, environment);
  {
    ProgressLine line(tr(language, "writing"), language);
    TRY(envmove::carry_out(environment, plan, std::ref(line)));
  }
  print(stdout,
        tr(language, "{}: {} files repaired in {}", environment.root, plan.changes.size(), base::format_duration(os::mono_now() - began)) +
            "\n");
  say_if_activate_fails(environment.root, language);
  return plan.problems.empty() ? 0 : 1;
}

}  // namespace phalanx::envcli
