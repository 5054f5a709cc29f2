#include "cli/records/runs.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/records/named_run.h"
#include "logs/runs/run_directory.h"
#include "machine/ranks/process_table.h"
#include "os/clock.h"
#include "os/files.h"
#include "view/speech.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;

constexpr int64_t kMostRanks = 1 << 20;

std::string variable(const char* name) { return os::environment_value(name); }

Error bad_ranks(std::string_view text) {
  return base::fail(ErrorKind::kUsage, fmt::format("--rank {}: not a list of ranks", base::quote(text))).with_hint("--rank 0,8-15");
}

// "0,8-15" into `wanted`.
base::Status pick(std::string_view text, std::vector<bool>& wanted) {
  int64_t last = static_cast<int64_t>(wanted.size()) - 1;
  for (std::string_view part : base::split(text, ',')) {
    size_t dash = part.find('-');
    auto low = base::parse_int(base::trim(part.substr(0, dash)), 0, kMostRanks);
    auto high = dash == std::string_view::npos ? low : base::parse_int(base::trim(part.substr(dash + 1)), 0, kMostRanks);
    if (!low.ok() || !high.ok() || *low > *high) return bad_ranks(text);
    if (*high > last)
      return base::fail(ErrorKind::kUsage, fmt::format("--rank {}: the run has ranks 0 to {}", base::printable(text), last));
    for (int64_t r = *low; r <= *high; ++r) wanted[static_cast<size_t>(r)] = true;
  }
  return base::ok();
}

}  // namespace

base::Result<std::string> runs_folder(const Invocation& invocation) {
  return logs::RunDirectory::base_folder(invocation.value(Flag::kLogDir).value_or(""));
}

base::Result<logs::Run> run_named(const Invocation& invocation) {
  std::string_view verb = row(invocation.verb).name;
  if (invocation.operands.size() > 1)
    return base::fail(ErrorKind::kUsage, fmt::format("{} takes one run", verb))
        .with_hint(fmt::format("phalanx {} {}", verb, base::shell_quote(invocation.operands[0])));
  TRY_ASSIGN(std::string folder, runs_folder(invocation));
  const OfOneName wanted = invocation.verb == Verb::kAttach ? OfOneName::kGoingOn : OfOneName::kNewest;
  TRY_ASSIGN(logs::Run run, find_named_run(folder, invocation.operands.empty() ? "" : invocation.operands[0], wanted));
  if (!run.ours) {
    std::string text =
        words::tr(language_here(), "phalanx: {} is not your run: everything in it may have been written by another user ({})\n", run.id,
                  machine::user_name("", run.owner));
    std::fputs(base::printable_lines(text).c_str(), stderr);
  }
  return run;
}

void warn_of(const Error& error) {
  std::string text = "warning: " + error.message + (error.cause.empty() ? "" : ": " + error.cause) + "\n";
  std::fputs(base::printable_lines(text).c_str(), stderr);
}

base::Language language_here() { return view::choose_language(variable); }

view::TerminalCapabilities surroundings_here(const Invocation& invocation) {
  std::string color = invocation.value(Flag::kColor).value_or("auto");
  view::Choice choice = color == "always" ? view::Choice::kOn : color == "never" ? view::Choice::kOff : view::Choice::kAuto;
  return view::detect_terminal(STDOUT_FILENO, STDERR_FILENO, variable, choice);
}

std::string state_of(const logs::Run& run, const Json& status) {
  std::string recorded = base::get_string(run.record, "state").value_or("");
  switch (run.life) {
    case logs::Life::kLost: return "lost";
    case logs::Life::kElsewhere:
    case logs::Life::kUnknown: return "unknown";
    case logs::Life::kAlive: {
      std::string phase = status.is_object() ? base::get_string(status, "phase").value_or("") : "";
      if (phase == "stopping" || phase == "finishing") return "stopping";
      return recorded.empty() ? "starting" : recorded;
    }
    case logs::Life::kEnded: break;
  }
  std::string verdict = base::get_string(run.record, "verdict").value_or("");
  if (verdict == "done" || verdict == "refused" || verdict == "interrupted" || verdict == "timed-out" || verdict == "lost") return verdict;
  return "failed";
}

words::Text state_word(std::string_view state) {
  constexpr std::pair<std::string_view, words::Text> kWords[] = {
      {"starting", words::Text{"starting"}},   {"running", words::Text{"running"}},
      {"stopping", words::Text{"stopping"}},   {"restarting", words::Text{"restarting"}},
      {"done", words::Text{"done"}},           {"failed", words::Text{"failed"}},
      {"refused", words::Text{"refused"}},     {"interrupted", words::Text{"interrupted"}},
      {"timed-out", words::Text{"timed out"}}, {"lost", words::Text{"lost"}},
      {"silent", words::Text{"silent"}},
  };
  for (const auto& [word, words] : kWords)
    if (word == state) return words;
  return words::Text{"unknown"};
}

std::optional<int64_t> age_s(const logs::Run& run, int64_t wall_now_ns) {
  bool ended = run.life == logs::Life::kEnded;
  std::optional<int64_t> at = os::parse_iso_time(base::get_string(run.record, ended ? "ended" : "began").value_or(""));
  if (!at) return std::nullopt;
  return std::max<int64_t>(0, wall_now_ns / 1'000'000'000 - *at);
}

std::vector<std::string> host_of_rank(const Json& record) {
  std::vector<std::string> hosts;
  for (const Json& host : base::get_list(record, "hosts")) {
    if (!host.is_object()) continue;
    int64_t ranks = base::get_int(host, "ranks").value_or(0);
    if (ranks < 0 || ranks + static_cast<int64_t>(hosts.size()) > kMostRanks) return hosts;
    hosts.insert(hosts.end(), static_cast<size_t>(ranks), base::get_string(host, "host").value_or("?"));
  }
  return hosts;
}

base::Result<std::vector<bool>> wanted_ranks(const Invocation& invocation, const std::vector<std::string>& hosts) {
  std::optional<std::string> ranks = invocation.value(Flag::kRank), host = invocation.value(Flag::kOnHost);
  std::vector<bool> wanted(hosts.size(), !ranks);
  if (ranks) TRY(pick(*ranks, wanted));
  if (!host) return wanted;
  bool known = false;
  for (size_t r = 0; r < hosts.size(); ++r) {
    known = known || hosts[r] == *host;
    wanted[r] = wanted[r] && hosts[r] == *host;
  }
  if (known) return wanted;
  std::vector<std::string> names;
  for (const std::string& name : hosts)
    if (names.empty() || names.back() != name) names.push_back(name);
  return base::fail(ErrorKind::kUsage, fmt::format("--host {}: no rank of the run was on this host", base::quote(*host)))
      .because(fmt::format("its hosts are {}", names.empty() ? "not known yet" : base::join(names, ", ")));
}

}  // namespace phalanx::cli
