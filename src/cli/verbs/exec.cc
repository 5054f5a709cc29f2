// exec: one command on every host, once.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"
#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/once_per_host.h"
#include "cli/records/runs.h"
#include "job/narrate.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using words::Text;
using words::tr;

std::string json_of(const std::vector<HostAnswer>& hosts) {
  base::Json list = base::Json::array();
  for (const HostAnswer& host : hosts) {
    base::Json one = {{"host", host.host}, {"exit_code", nullptr}, {"output", host.output}};
    if (host.exit_code) one["exit_code"] = *host.exit_code;
    if (host.cut) one["cut"] = true;
    list.push_back(std::move(one));
  }
  return base::to_text({{"schema", 1}, {"hosts", std::move(list)}}, 2) + "\n";
}

// "0 on h1,h2; 1 on h3": only where they differ.
void compare(const std::vector<HostAnswer>& hosts, base::Language language) {
  std::vector<std::pair<std::optional<int>, std::vector<std::string>>> codes;
  for (const HostAnswer& host : hosts) {
    auto same = std::find_if(codes.begin(), codes.end(), [&](const auto& group) { return group.first == host.exit_code; });
    if (same == codes.end()) codes.push_back({host.exit_code, {host.host}});
    else same->second.push_back(host.host);
  }
  if (codes.size() < 2) return;
  std::string text;
  for (const auto& [code, names] : codes)
    text += tr(language, "{}{} on {}", text.empty() ? Text{} : Text{"; "}, code ? std::to_string(*code) : "-",
               base::join(base::fold_names(names), ","));
  std::fputs(tr(language, "phalanx: the exit codes differ: {}\n", text).c_str(), stderr);
}

}  // namespace

base::Result<int> exec_verb(const Invocation& invocation) {
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  const base::Language language = language_here();
  std::vector<std::string> command = options.command;
  TRY_ASSIGN(const OnceAnswers answers, run_once_per_host(options, std::move(command)));
  for (const base::Error& error : answers.errors) std::fputs(words::render(error, language_here()).c_str(), stderr);
  const std::string out = options.json ? json_of(answers.hosts) : folded_answers(answers.hosts, language);
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (answers.timed_out) {
    std::fputs(tr(language, "phalanx: stopped after --timeout {}\n", base::format_duration(*options.timeout)).c_str(), stderr);
    return job::kTimedOutCode;
  }
  if (!options.json) compare(answers.hosts, language);
  if (!answers.errors.empty()) return base::exit_code(answers.errors.front().kind);
  return exit_code_of(answers.hosts);
}

}  // namespace phalanx::cli
