// env: what a Python environment is, and its repair after it was moved.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/records/runs.h"
#include "codes/code.h"
#include "envmove/environment.h"
#include "envmove/rehome.h"
#include "envmove/verify.h"
#include "envmove/votes.h"
#include "os/clock.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;
using base::Json;
using envmove::Environment;
using words::Text;
using words::tr;

constexpr size_t kShown = 20;  // of a list, without --verbose

void print(std::FILE* to, const std::string& text) {
  const std::string safe = base::printable_lines(text);
  std::fwrite(safe.data(), 1, safe.size(), to);
  std::fflush(to);
}

std::string source_words(const envmove::Candidate& one, base::Language language) {
  std::vector<std::string> parts;
  for (const auto& [source, count] : one.votes) switch (source) {
      case envmove::Source::kScript: parts.push_back(tr(language, "{} scripts", count)); break;
      case envmove::Source::kPkgConfig: parts.push_back(tr(language, "{} pkg-config files", count)); break;
      case envmove::Source::kSysconfig: parts.push_back(tr(language, "the settings Python was built with")); break;
      case envmove::Source::kActivate: parts.push_back(tr(language, "{} activation scripts", count)); break;
      case envmove::Source::kVenvConfig: parts.push_back("pyvenv.cfg"); break;
    }
  return base::join(parts, ", ");
}

std::string kind_words(const Environment& environment) { return environment.kind == envmove::Kind::kConda ? "conda" : "venv"; }

// A line of files read, rewritten a few times a second on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::string what, base::Language language) : what_(std::move(what)), language_(language), shown_(isatty(2) == 1) {}
  ~ProgressLine() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(size_t done, size_t of) {
    if (!shown_) return;
    std::lock_guard lock(mutex_);
    constexpr os::nanoseconds kBetween = os::milliseconds(200);
    if (drawn_ && os::mono_now() - last_ < kBetween) return;
    last_ = os::mono_now();
    drawn_ = true;
    std::fputs(("\r\033[K" + what_ + " " + tr(language_, "{} of {} files", done, of)).c_str(), stderr);
  }

 private:
  std::string what_;
  base::Language language_;
  bool shown_, drawn_ = false;
  os::Mono last_;
  std::mutex mutex_;
};

// --- show

struct Seen {
  std::vector<envmove::Candidate> candidates;
  std::vector<std::string> old_prefixes;
  bool interrupted = false;
};

Json show_json(const Environment& environment, const Seen& seen) {
  Json json = {{"schema", 1},
               {"path", environment.root},
               {"kind", kind_words(environment)},
               {"python", environment.python},
               {"bytes", environment.bytes},
               {"files", environment.files.size()},
               {"fingerprint", envmove::fingerprint(environment)},
               {"interrupted", seen.interrupted},
               {"old_prefixes", Json(seen.old_prefixes)}};
  if (!environment.base.empty()) json["base"] = environment.base;
  json["candidates"] = json["packages"] = json["editables"] = json["unread"] = Json::array();
  for (const envmove::Candidate& one : seen.candidates) json["candidates"].push_back({{"prefix", one.prefix}, {"files", one.total()}});
  for (const envmove::Package& one : environment.packages)
    json["packages"].push_back({{"name", one.name}, {"version", one.version}, {"source", one.conda ? "conda" : "pip"}});
  for (const envmove::Editable& one : environment.editables)
    json["editables"].push_back({{"name", one.name}, {"source", one.source}, {"exists", os::exists(one.source)}});
  for (const std::string& one : environment.unread) json["unread"].push_back(one);
  return json;
}

std::string show_page(const Environment& environment, const Seen& seen, base::Language language) {
  std::string out = environment.root + "\n";
  auto row = [&](const std::string& name, const std::string& value) { out += "  " + base::pad_right(name, 13) + value + "\n"; };
  const size_t conda = static_cast<size_t>(
      std::count_if(environment.packages.begin(), environment.packages.end(), [](const envmove::Package& one) { return one.conda; }));
  row(tr(language, "kind"), kind_words(environment));
  row("Python", environment.python.empty() ? "-" : environment.python);
  if (!environment.base.empty())
    row(tr(language, "base"), environment.base + (os::is_folder(environment.base) ? "" : tr(language, " (missing on this machine)")));
  row(tr(language, "size"), tr(language, "{} in {} files", base::format_bytes(environment.bytes), environment.files.size()));
  row(tr(language, "packages"), tr(language, "{} from conda, {} from pip", conda, environment.packages.size() - conda));
  for (const envmove::Editable& one : environment.editables)
    row(tr(language, "editable"),
        one.name + ": " + one.source + (os::exists(one.source) ? "" : tr(language, " (missing on this machine)")));
  for (const envmove::Candidate& one : seen.candidates)
    row(one.prefix == environment.root ? tr(language, "made for") : tr(language, "former place"),
        one.prefix + " (" + source_words(one, language) + ")");
  row(tr(language, "fingerprint"), envmove::fingerprint(environment).substr(0, 16));
  for (const std::string& one : environment.unread) row(tr(language, "unreadable"), one);
  if (seen.interrupted)
    out += "\n" + tr(language, "A repair was interrupted here: phalanx env rehome {}", base::shell_quote(environment.root)) + "\n";
  else if (!seen.old_prefixes.empty())
    out += "\n" + tr(language, "It was moved: phalanx env rehome {}", base::shell_quote(environment.root)) + "\n";
  return out;
}

base::Result<int> show(const Invocation& invocation, const Environment& environment) {
  Seen seen;
  seen.candidates = envmove::vote(environment);
  seen.old_prefixes = envmove::old_prefixes(environment, seen.candidates);
  TRY_ASSIGN(seen.interrupted, envmove::was_interrupted(environment.root));
  if (invocation.has(Flag::kJson)) std::fputs((base::to_text(show_json(environment, seen), 2) + "\n").c_str(), stdout);
  else print(stdout, show_page(environment, seen, language_here()));
  return 0;
}

// --- rehome

base::Result<envmove::Move> move_of(const Invocation& invocation, const Environment& environment) {
  envmove::Move move{invocation.values(Flag::kOldPrefix), environment.root};
  for (std::string& old : move.old_prefixes) {
    while (old.size() > 1 && old.ends_with('/')) old.pop_back();
    if (!old.starts_with('/') || old == "/")
      return base::fail(ErrorKind::kUsage, fmt::format("--old-prefix {} is no absolute path", base::quote(old)));
  }
  if (!move.old_prefixes.empty()) return move;
  std::vector<envmove::Candidate> candidates = envmove::vote(environment);
  move.old_prefixes = envmove::old_prefixes(environment, candidates);
  if (move.old_prefixes.empty() && candidates.size() > 1) {
    std::string said;
    for (const envmove::Candidate& one : candidates) said += (said.empty() ? "" : ", ") + one.prefix;
    return base::fail(ErrorKind::kConfig, "nobody can tell where the environment was before")
        .because(fmt::format("its files name {}", said))
        .with_hint("phalanx env rehome " + base::shell_quote(environment.root) + " --old-prefix PATH");
  }
  return move;
}

std::string list_of(const std::vector<std::string>& all, bool whole, base::Language language) {
  std::string out;
  const size_t shown = whole ? all.size() : std::min(all.size(), kShown);
  for (size_t i = 0; i < shown; ++i) out += "  " + all[i] + "\n";
  if (shown < all.size()) out += tr(language, "  and {} more (--dry-run lists all)", all.size() - shown) + "\n";
  return out;
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
  if (whole) out += list_of(changed, true, language);
  if (!plan.untouched.empty())
    out += tr(language, "{} files of other formats name it as well and are left as they are:", plan.untouched.size()) + "\n" +
           list_of(plan.untouched, whole, language);
  if (!problems.empty()) out += tr(language, "cannot be moved:") + "\n" + list_of(problems, whole, language);
  print(stderr, out);
}

base::Result<int> rehome(const Invocation& invocation, const Environment& environment) {
  const base::Language language = language_here();
  const bool all = invocation.has(Flag::kDryRun);
  TRY_ASSIGN(envmove::Move move, move_of(invocation, environment));
  TRY_ASSIGN(bool interrupted, envmove::was_interrupted(environment.root));
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
  if (invocation.has(Flag::kDryRun)) return plan.problems.empty() ? 0 : base::exit_code(ErrorKind::kConfig);
  if (!plan.problems.empty() && !invocation.has(Flag::kPartial)) return cannot_move(plan, environment);
  {
    ProgressLine line(tr(language, "writing"), language);
    TRY(envmove::carry_out(environment, plan, std::ref(line)));
  }
  print(stdout,
        tr(language, "{}: {} files repaired in {}", environment.root, plan.changes.size(), base::format_duration(os::mono_now() - began)) +
            "\n");
  return plan.problems.empty() ? 0 : 1;
}

// --- verify

Json verify_json(const Environment& environment, const std::vector<envmove::Flaw>& flaws) {
  Json json = {{"schema", 1}, {"path", environment.root}, {"fingerprint", envmove::fingerprint(environment)}, {"findings", Json::array()}};
  for (const envmove::Flaw& flaw : flaws)
    json["findings"].push_back(
        {{"code", flaw.code}, {"severity", flaw.fatal ? "error" : "warning"}, {"path", flaw.path}, {"detail", flaw.detail}});
  return json;
}

// Every code once, with the first of what it was seen on.
std::string verify_page(const std::vector<envmove::Flaw>& flaws, base::Language language) {
  std::string out;
  for (size_t i = 0; i < flaws.size();) {
    size_t end = i;
    while (end < flaws.size() && flaws[end].code == flaws[i].code) ++end;
    out += std::string((flaws[i].fatal ? Text{"error"} : Text{"warning"}).in(language)) + "  " + std::string(flaws[i].code) + ": " +
           std::string(codes::get(flaws[i].code).title.in(language)) + "\n";
    std::vector<std::string> seen;
    for (size_t k = i; k < end; ++k) seen.push_back(flaws[k].path + (flaws[k].detail.empty() ? "" : ": " + flaws[k].detail));
    out += list_of(seen, false, language);
    i = end;
  }
  return out;
}

base::Result<int> verify(const Invocation& invocation, const Environment& environment) {
  const base::Language language = language_here();
  std::vector<envmove::Flaw> flaws;
  {
    ProgressLine line(tr(language, "reading"), language);
    TRY_ASSIGN(flaws, envmove::verify(environment, {}, std::ref(line)));
  }
  const bool fatal = !flaws.empty() && flaws.front().fatal;
  if (invocation.has(Flag::kJson)) {
    std::fputs((base::to_text(verify_json(environment, flaws), 2) + "\n").c_str(), stdout);
  } else if (flaws.empty()) {
    print(stdout,
          tr(language, "{}: nothing is wrong; fingerprint {}", environment.root, envmove::fingerprint(environment).substr(0, 16)) + "\n");
  } else {
    print(stdout, verify_page(flaws, language));
    print(stderr, "\nphalanx explain " + std::string(flaws.front().code) + "\n");
  }
  return fatal ? base::exit_code(ErrorKind::kUnfit) : 0;
}

}  // namespace

base::Result<int> env_verb(const Invocation& invocation) {
  const std::vector<std::string>& words = invocation.operands;
  if (words.empty() || (words[0] != "show" && words[0] != "rehome" && words[0] != "verify"))
    return base::fail(ErrorKind::kUsage,
                      words.empty() ? std::string("env needs to know what to do") : fmt::format("env cannot {}", base::quote(words[0])))
        .with_hint("phalanx env show ENV, phalanx env verify ENV, or phalanx env rehome ENV");
  if (words.size() != 2)
    return base::fail(ErrorKind::kUsage, fmt::format("env {} takes one environment", words[0]))
        .with_hint("phalanx env " + words[0] + " ENV");
  TRY_ASSIGN(std::string path, envmove::find_environment(words[1]));
  TRY_ASSIGN(Environment environment, envmove::read_environment(path));
  if (words[0] == "show") return show(invocation, environment);
  return words[0] == "verify" ? verify(invocation, environment) : rehome(invocation, environment);
}

}  // namespace phalanx::cli
