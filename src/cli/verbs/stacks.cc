// stacks: what every rank of a run does now: functions, files and lines of Python beside the place where it waits.
#include <cstdio>

#include <fmt/format.h>

#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/records/runs.h"
#include "job/control/client.h"
#include "job/look.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::Json;
using words::tr;

constexpr os::milliseconds kReserve{2000};  // beyond what the launcher gives the hosts

// Everything comes from hosts: what is of the wrong kind is left out, and all of it is made safe to show.
std::string text(const Json& json, const char* key) { return base::printable(base::get_string(json, key).value_or(""), 600); }
int64_t number(const Json& json, const char* key) { return base::get_int(json, key).value_or(0); }
using base::get_list;

void add_thread(std::string& out, const Json& thread) {
  std::string waits = text(thread, "wchan"), on = text(thread, "waits_on");
  out += fmt::format("    {} {}: {}{}{}\n", number(thread, "tid"), text(thread, "name"), text(thread, "state"),
                     waits.empty() ? "" : " " + waits, on.empty() ? "" : " (" + on + ")");
  for (const Json& frame : get_list(thread, "python"))
    if (frame.is_object()) out += fmt::format("      {}:{} {}\n", text(frame, "file"), number(frame, "line"), text(frame, "function"));
  std::string native;
  for (const Json& frame : get_list(thread, "native"))
    if (frame.is_string()) native += (native.empty() ? "" : " < ") + base::printable(frame.get<std::string>(), 200);
  if (!native.empty()) out += "      [" + native + "]\n";
}

std::string rank_text(const Json& rank, base::Language language) {
  const std::string place = text(rank, "place"), doing = text(rank, language == base::Language::kChinese ? "doing_zh" : "doing");
  std::string out = tr(language, "rank {} ({}, pid {})", number(rank, "rank"), text(rank, "host"), number(rank, "pid"));
  out += ": " + place + (place.empty() || doing.empty() ? "" : ", ") + doing;
  if (place.empty() && doing.empty()) out += tr(language, "state unknown");
  if (rank.contains("step")) out += tr(language, "; last step {}", number(rank, "step"));
  out += "\n";
  if (rank.contains("cut")) out += "  " + tr(language, "threads left out: too many at once; ask for this rank alone") + "\n";
  for (const Json& process : get_list(rank, "processes")) {
    if (!process.is_object()) continue;
    std::string python = text(process, "python"), problem = text(process, "problem");
    out += fmt::format("  {} {}{}\n", number(process, "pid"), text(process, "name"), python.empty() ? "" : " (Python " + python + ")");
    if (!problem.empty())
      out += "    " + tr(language, "cannot tell where its Python code is: {}", words::said_in(language, problem)) + "\n";
    for (const Json& thread : get_list(process, "threads"))
      if (thread.is_object()) add_thread(out, thread);
    if (int64_t others = number(process, "other_threads"); others > 0)
      out += "    " + tr(language, "{} threads that run no Python", others) + "\n";
  }
  return out;
}

}  // namespace

base::Result<int> stacks_verb(const Invocation& invocation) {
  TRY_ASSIGN(logs::Run run, run_named(invocation));
  TRY(logs::must_be_ours(run));
  if (run.life != logs::Life::kAlive)
    return base::fail(base::ErrorKind::kUsage, fmt::format("the run {} is not in progress", run.id)).with_hint("phalanx why " + run.id);
  TRY_ASSIGN(const std::vector<bool> wanted, wanted_ranks(invocation, host_of_rank(run.record)));
  TRY_ASSIGN(Json look, job::ask_look(run.path, run.id, job::kLookPatience + kReserve));
  Json ranks = Json::array();
  for (const Json& rank : get_list(look, "ranks")) {
    int64_t at = rank.is_object() ? number(rank, "rank") : -1;
    if (at >= 0 && (!invocation.has(Flag::kRank) || (static_cast<size_t>(at) < wanted.size() && wanted[static_cast<size_t>(at)])))
      ranks.push_back(rank);
  }
  look["ranks"] = std::move(ranks);
  std::string out;
  const base::Language language = language_here();
  if (invocation.has(Flag::kJson)) {
    out = base::to_text(look, 2) + "\n";
  } else {
    for (const Json& host : get_list(look, "hosts"))
      if (host.is_object()) out += tr(language, "{} did not answer: {}", text(host, "host"), text(host, "problem")) + "\n";
    for (const Json& rank : get_list(look, "ranks")) out += rank_text(rank, language);
    if (out.empty()) out = tr(language, "no rank is running yet, or any more") + "\n";
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
