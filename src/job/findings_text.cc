#include "job/findings_text.h"

#include <fmt/format.h>
#include <algorithm>
#include <span>

#include "base/text.h"
#include "doctor/commands.h"

namespace phalanx::job {

using base::Language;
using words::tr;

namespace {

constexpr size_t kNamedHosts = 4;

std::string headline(const State& state, const doctor::Finding& finding, Language language) {
  std::string hosts = name_hosts(state, finding.hosts, language);
  return fmt::format("{}{}{}", hosts, hosts.empty() ? "" : ": ", finding.row->page().title.in(language));
}

}  // namespace

std::string name_hosts(const State& state, const std::vector<size_t>& hosts, Language language) {
  std::string names;
  size_t named = hosts.size() > kNamedHosts + 1 ? kNamedHosts - 1 : hosts.size();
  for (size_t i = 0; i < named; ++i) names += (i ? ", " : "") + state.job.hosts[hosts[i]].target.name;
  if (hosts.size() > 2 && hosts.size() == state.hosts.size()) return tr(language, "all {} hosts", hosts.size());
  if (named == hosts.size()) return names;
  return tr(language, "{} of {} hosts ({}, …)", hosts.size(), state.hosts.size(), names);
}

std::string fix_of(const State&, const doctor::Finding& finding, Language language) {
  std::string fix = doctor::command_of(finding, language);
  if (fix.empty()) return fmt::format("phalanx explain {}", finding.row->code);
  fix = doctor::with_cost(fix, language);
  if (finding.where.empty()) return fix;
  return tr(language, "{}   (on {})", fix, finding.where);
}

std::vector<base::Error> found_errors(const State& state, Language language) {
  std::vector<base::Error> out;
  for (const doctor::Finding& finding : state.survey.examination.findings) {
    if (finding.accepted || finding.row->severity != doctor::Severity::kError) continue;
    base::Error error = base::fail(base::ErrorKind::kUnfit, headline(state, finding, language));
    error.cause = finding.evidence.in(language);
    error.context.push_back(tr(language, "checking before the start: {}", finding.row->code));
    error.hint = fix_of(state, finding, language);
    out.push_back(std::move(error));
  }
  return out;
}

std::string concerns(const State& state, size_t from, Language language) {
  std::string text;
  int count = 0;
  const std::vector<doctor::Finding>& findings = state.survey.examination.findings;
  for (const doctor::Finding& finding : std::span(findings).subspan(std::min(from, findings.size()))) {
    if (finding.accepted || finding.row->severity == doctor::Severity::kNote) continue;
    ++count;
    text += fmt::format("\n  {}  {}", finding.row->code, headline(state, finding, language));
    if (const std::string& evidence = finding.evidence.in(language); !evidence.empty()) text += ": " + evidence;
    if (std::string fix = fix_of(state, finding, language); !fix.empty()) text += "\n      $ " + fix;
  }
  return tr(language, "{} warning{} before a long run (details: phalanx explain CODE; accept one: --accept CODE)", count,
            count == 1 ? "" : "s") +
         text;
}

}  // namespace phalanx::job
