#include "job/stall_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "codes/code.h"
#include "job/narrate.h"
#include "wire/sample_messages.h"

namespace phalanx::job {
namespace {

using base::Language;
using words::tr;

std::string title_of(const std::string& code, Language language) {
  const codes::Code* known = codes::find(code);
  return known ? std::string(known->title.in(language)) : code;
}

std::string who(const State& state, const diagnosis::Diagnosis& verdict, Language language) {
  if (verdict.ranks.empty()) return verdict.host ? state.job.hosts[*verdict.host].target.name : "";
  if (verdict.ranks.size() == 1) return name_rank(*state.plan, verdict.ranks.front());
  return name_ranks(*state.plan, verdict.ranks, language);
}

// "rank 1 (h2, local 0): a rank never entered … [HANG-NEVER-ENTERED]"
std::string headline(const State& state, const diagnosis::Diagnosis& verdict, Language language) {
  std::string whom = who(state, verdict, language);
  std::string title = title_of(verdict.code, language);
  return (whom.empty() ? title : tr(language, "{}: {}", whom, title)) + fmt::format(" [{}]", verdict.code);
}

std::string body(const diagnosis::Diagnosis& verdict, std::string_view indent, Language language) {
  std::string text = verdict.evidence.in(language);
  for (const doctor::Words& line : verdict.details) text += fmt::format("\n{}{}", indent, line.in(language));
  for (const doctor::Words& line : verdict.missing) text += fmt::format("\n{}{}", indent, tr(language, "missing evidence: {}", line));
  return text;
}

// Where lines of Python are known, phalanx can show them all itself. Where none are, py-spy was tried on the host too: it is not installed
// or may not look. Of a process that has been stopped nothing shows anything.
std::string fix_of(const State& state, const diagnosis::Diagnosis& verdict, bool stopped, Language language) {
  if (verdict.fix.empty()) return "phalanx explain " + verdict.code;
  if (verdict.fix.starts_with("py-spy ")) {
    if (!stopped && verdict.line_seen && !state.job.run_id.empty())
      return "phalanx stacks " + state.job.run_id + (verdict.ranks.empty() ? "" : fmt::format(" --rank {}", verdict.ranks.front()));
    const bool hook =
        std::any_of(state.job.set.begin(), state.job.set.end(), [](const auto& one) { return one.first == wire::kPythonHookVariable; });
    if (hook || verdict.stack_seen || verdict.line_seen) return "phalanx explain " + verdict.code;
    return tr(language, "add --python-hook: phalanx then shows the line of Python in which each rank waits; the hosts need nothing for it");
  }
  bool remote = verdict.host && verdict.fix.rfind("phalanx ", 0) != 0;
  return remote ? fmt::format("ssh {} {}", state.job.hosts[*verdict.host].target.name, verdict.fix) : verdict.fix;
}

}  // namespace

std::string stall_text(const State& state, const Stalled& note, Language language) {
  std::string still = base::format_duration(std::chrono::duration_cast<std::chrono::seconds>(note.still));
  std::string text = note.steps_known ? tr(language, "no step for {}: ", still) : tr(language, "no output for {}: ", still);
  text += headline(state, note.verdict, language) + "\n  " + body(note.verdict, "  ", language);
  text += tr(language, "\n  try: {}", fix_of(state, note.verdict, false, language));
  if (note.action == OnStall::kStop) text += tr(language, "\n  --on-stall stop: stopping the run");
  if (note.action == OnStall::kRestart) text += tr(language, "\n  --on-stall restart: restarting");
  return text;
}

std::string slow_text(const State& state, const Slow& note, Language language) {
  std::string text = headline(state, note.verdict, language) + "\n  " + body(note.verdict, "  ", language);
  if (!note.verdict.fix.empty()) text += tr(language, "\n  try: {}", fix_of(state, note.verdict, false, language));
  return text;
}

base::Json describe_stall(const State& state, const diagnosis::Diagnosis& verdict) {
  base::Json json = {{"code", verdict.code}, {"ranks", verdict.ranks}};
  if (verdict.host) json["host"] = state.job.hosts[*verdict.host].target.name;
  json["evidence"] = verdict.evidence.english;
  for (const auto& [key, lines] : {std::pair("details", &verdict.details), std::pair("missing", &verdict.missing)}) {
    json[key] = base::Json::array();
    for (const doctor::Words& line : *lines) json[key].push_back(line.english);
  }
  json["fix"] = fix_of(state, verdict, false, Language::kEnglish);
  return json;
}

base::Error stall_error(const State& state, const Verdict& verdict, Language language) {
  base::Error error = base::fail(base::ErrorKind::kTimeout, headline(state, *verdict.hang, language));
  error.cause = body(*verdict.hang, "    ", language);
  error.hint = fix_of(state, *verdict.hang, true, language);
  return error;
}

}  // namespace phalanx::job
