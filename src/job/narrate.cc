#include "job/narrate.h"

#include <sys/wait.h>

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "codes/code.h"
#include "diagnosis/logs/verdict.h"
#include "diagnosis/rank_end.h"
#include "job/findings_text.h"
#include "job/stall_text.h"
#include "logs/escape.h"
#include "os/process.h"

namespace phalanx::job {
namespace {

using base::Language;
using words::Phrase;
using words::tr;

std::string how_it_ended(int status, Language language) {
  if (WIFSIGNALED(status)) return tr(language, "killed by {}", os::signal_name(WTERMSIG(status)));
  return tr(language, "exited with code {}", WEXITSTATUS(status));
}

std::string host_name(const State& state, size_t host) { return state.job.hosts[host].target.name; }

std::string seconds(os::nanoseconds duration) {
  double s = static_cast<double>(duration.count()) / 1e9;
  return s < 0.0095 ? fmt::format("{:.1f} ms", s * 1e3) : fmt::format("{:.2f} s", s);
}

struct Words {
  const State& state;
  Language language;

  std::string operator()(const WaitingForGpuMemory& n) const {
    return tr(language, "{}: waiting for the driver to release the GPU memory of ranks that have exited", host_name(state, n.host));
  }
  std::string operator()(const Restarting& n) const {
    std::string text;
    for (const Replaced& r : n.replaced) {
      if (r.by.empty()) text += tr(language, "continuing without {}; ", r.name);
      else text += tr(language, "{1} replaces {0}; ", r.name, r.by);
    }
    if (n.before_start) return text + tr(language, "checking again");
    if (n.sooner)
      return text + tr(language, "restarting in at most {}: restart {} of {}", base::format_duration(n.wait), n.attempt,
                       n.attempt + n.restarts_left);
    return text + tr(language, "restarting in {}: restart {} of {}", base::format_duration(n.wait), n.attempt, n.attempt + n.restarts_left);
  }
  std::string operator()(const NotRestarting& n) const {
    if (n.why == NotRestarting::Why::kRepeats)
      return tr(language, "not restarting: the program failed twice in the same way at the same step");
    return tr(language, "not restarting: {} restart{} used, the limit set by --max-restarts", n.restarts, n.restarts == 1 ? "" : "s");
  }
  std::string operator()(const NotSuspended&) const {
    return tr(language, "a run cannot be suspended, because its hosts would consider the launcher dead; Ctrl-C stops it");
  }
  std::string operator()(const Concerns& n) const { return concerns(state, n.from, language); }
  std::string operator()(const RunStarted& n) const {
    return tr(language, "{} rank{} on {} host{}, rendezvous at {}:{}", n.world, n.world == 1 ? "" : "s", n.hosts, n.hosts == 1 ? "" : "s",
              n.address, n.port);
  }
  std::string operator()(const WaitingForStore& n) const {
    return tr(language, "waiting for {}: never connected to the store", name_ranks(*state.plan, n.missing, language));
  }
  std::string operator()(const WaitingForHosts& n) const {
    constexpr size_t kMost = 8;
    std::string names;
    for (size_t i = 0; i < std::min(n.hosts.size(), kMost); ++i) names += (names.empty() ? "" : ", ") + host_name(state, n.hosts[i]);
    if (n.hosts.size() > kMost) names = tr(language, "{} and {} other hosts", names, n.hosts.size() - kMost);
    return n.open ? tr(language, "waiting for {}: slow to answer the checks", names) : tr(language, "still connecting to {}", names);
  }
  std::string operator()(const StoppingRanks& n) const {
    std::string ranks = name_ranks(*state.plan, n.awaited, language), grace = base::format_duration(n.grace);
    if (!n.by_operator) return tr(language, "stopping {}: SIGTERM, and SIGKILL after {}", ranks, grace);
    return tr(language, "SIGTERM to all ranks; waiting up to {} for {}; Ctrl-C again kills at once", grace, ranks);
  }
  std::string operator()(const KillingRanks& n) const {
    return tr(language, "SIGKILL to {}: still running after SIGTERM", name_ranks(*state.plan, n.awaited, language));
  }
  std::string operator()(const HostLeftovers& n) const {
    std::string text = tr(language, "{}: killed {} processes left behind by the ranks", host_name(state, n.host), n.killed);
    if (n.left > 0) text += tr(language, "; {} could not be killed (in uninterruptible sleep?)", n.left);
    return text;
  }
  std::string operator()(const Stalled& n) const { return stall_text(state, n, language); }
  std::string operator()(const Slow& n) const { return slow_text(state, n, language); }
  std::string operator()(const GoesOn& n) const {
    return tr(language, "the run continues after a stall of {}",
              base::format_duration(std::chrono::duration_cast<std::chrono::seconds>(n.stood)));
  }
  std::string operator()(const HostTrouble& n) const { return host_name(state, n.host) + ": " + base::replace_all(n.text, "\n", "\n    "); }
};

// "rank 3 (h2, local 1) exited with code 1 at train.py:42 (step) 0.4 ms before any other"
std::string what_happened(const State& state, const Verdict& v, Language language) {
  std::string text = name_rank(*state.plan, v.rank) + " ";
  if (v.code == "RUN-LEFT-EARLY")
    return text + tr(language, "exited cleanly while other ranks were still running, and they failed because it was gone");
  text += how_it_ended(v.status, language);
  if (!v.where.empty()) text += tr(language, " at {}", v.where);
  if (v.lead) text += tr(language, " {} before any other", seconds(*v.lead));
  return text;
}

// A code of its own says more than the way it ended.
bool tells_more(std::string_view code) { return !code.empty() && code != "RUN-EXIT-CODE" && code != "RUN-EXCEPTION"; }

base::Error explain_rank(const State& state, const Verdict& v, const std::string& last_lines, const std::string& log, Language language) {
  std::string text = what_happened(state, v, language);
  auto add = [&](int count, const Phrase<int, std::string_view>& some) {
    if (count > 0) text += tr(language, "; {}", tr<int, std::string_view>(language, some, count, count == 1 ? "" : "s"));
  };
  constexpr Phrase<int, std::string_view> kStopped{"{} rank{} stopped by phalanx"};
  constexpr Phrase<int, std::string_view> kFailed{"{} rank{} failed as a consequence"};
  constexpr Phrase<int, std::string_view> kLost{"{} rank{} lost with their host"};
  add(v.stopped, kStopped);
  add(v.also_failed, kFailed);
  add(v.lost, kLost);
  base::Error error = base::fail(base::ErrorKind::kJobFailed, std::move(text));
  const codes::Code* words = codes::find(v.code);
  if (tells_more(v.code) && words) {
    error.cause = fmt::format("{}: {}", v.code, words->title.in(language));
    if (!v.evidence.empty()) error.cause += "\n    " + logs::strip_escapes(v.evidence);
  }
  std::string said = diagnosis::error_file_message(v.error_file);
  if (said.empty()) said = last_lines;
  said = logs::strip_escapes(said);  // colours say nothing here, and as \x1b[31m they hide the words
  if (base::trim(said).empty()) said.clear();
  if (!said.empty() && v.code != "RUN-LEFT-EARLY")
    error.cause += (error.cause.empty() ? "" : "\n  ") + tr(language, "its last output:") + "\n    " +
                   base::replace_all(base::trim(said), "\n", "\n    ");
  if (!log.empty()) error.hint = tells_more(v.code) ? "phalanx explain " + v.code : "less " + base::shell_quote(log);
  return error;
}

// "h1: X" and "h2: X" with the same cause are one error of "h1, h2".
std::vector<base::Error> fold(const State& state, const std::vector<base::Error>& errors) {
  std::vector<base::Error> out;
  std::vector<std::string> bodies;  // of out, without the host
  for (const base::Error& error : errors) {
    std::string host;
    for (const HostRequest& request : state.job.hosts)
      if (error.message.rfind(request.target.name + ": ", 0) == 0) host = request.target.name;
    std::string body = error.message.substr(host.empty() ? 0 : host.size() + 2) + "\n" + error.cause;
    size_t same = 0;
    while (same < out.size() && (host.empty() || bodies[same] != body)) ++same;
    if (same < out.size()) {
      out[same].message.insert(out[same].message.size() - (error.message.size() - host.size()), ", " + host);
      continue;
    }
    out.push_back(error);
    bodies.push_back(std::move(body));
  }
  return out;
}

}  // namespace

std::string name_rank(const Plan& plan, int rank) {
  return fmt::format("rank {} ({}, local {})", rank, plan.hosts[static_cast<size_t>(plan.host_of(rank))].name, plan.local_rank(rank));
}

std::string name_ranks(const Plan& plan, const std::vector<int>& ranks, Language language) {
  std::map<int, std::vector<int>> by_host;
  for (int rank : ranks) by_host[plan.host_of(rank)].push_back(rank);
  std::string text;
  for (const auto& [host, some] : by_host)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", base::format_ranges(some), plan.hosts[static_cast<size_t>(host)].name);
  if (language == Language::kChinese) return "rank " + text;
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string narrate(const State& state, const Note& note, Language language) {
  return base::printable_lines(std::visit(Words{state, language}, note));  // a note may quote a host: Trouble, for one
}

std::vector<base::Error> explain(const State& state, const Verdict& verdict, const std::string& last_lines, const std::string& log,
                                 Language language) {
  switch (verdict.kind) {
    case Verdict::Kind::kDone:
    case Verdict::Kind::kPlanned: return {};
    case Verdict::Kind::kRankFailed: return {explain_rank(state, verdict, last_lines, log, language)};
    case Verdict::Kind::kInterrupted:
      if (verdict.exit_code == kTimedOutCode)
        return {base::fail(base::ErrorKind::kTimeout, tr(language, "the run reached its --timeout; phalanx stopped it"))};
      return {base::fail(base::ErrorKind::kInterrupted, tr(language, "interrupted by the operator"))};
    case Verdict::Kind::kHung: return {stall_error(state, verdict, language)};
    case Verdict::Kind::kChecked: return verdict.refusals;
    case Verdict::Kind::kRefused: return verdict.unfit ? found_errors(state, language) : fold(state, verdict.refusals);
    case Verdict::Kind::kHostLost: break;
  }
  std::vector<base::Error> errors = verdict.refusals;
  if (verdict.suspended) {
    errors.front().message += tr(language, "; {} ranks were stopped", verdict.lost + verdict.stopped);
    return errors;
  }
  int with_it = 0;
  const PlannedHost& host = state.plan->hosts[verdict.host];
  for (int r = host.first_rank; r < host.first_rank + host.ranks; ++r) with_it += state.ranks[static_cast<size_t>(r)].lost;
  std::string& message = errors.front().message;
  message += tr(language, "; {} rank{} lost with it", with_it, with_it == 1 ? "" : "s");
  if (verdict.lost > with_it) message += tr(language, ", {} with other hosts", verdict.lost - with_it);
  message += tr(language, ", {} stopped by phalanx", verdict.stopped);
  return errors;
}

}  // namespace phalanx::job
