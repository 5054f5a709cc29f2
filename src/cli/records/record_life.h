// What run.json holds so that one can come back to a run: where its launcher is, how its hosts are reached, and its end in the words
// that were shown (docs/formats/run-directory.md).
#pragma once

#include <string>

#include "base/json.h"
#include "cli/flags/run_options.h"
#include "job/narrate.h"

namespace phalanx::cli {

// {"launcher": …, "lease_ms": …, "passed_on": …, "reach": …}
base::Json describe_reach(const job::Job& job, const RunOptions& options);
// {"explained": {"en": […], "zh": […]}}, or nothing for a run that has done its work. Arguments as of job::explain.
base::Json describe_words(const job::State& state, const job::Verdict& verdict, const std::string& last_lines, const std::string& log);
// The errors of a run.json, as describe_words has written them.
std::vector<base::Error> words_of(const base::Json& record, base::Language language);

// The lease of the run's agents (--lease); the default where run.json does not say it.
std::chrono::milliseconds lease_of(const base::Json& record);

// How the hosts of a run are reached, as describe_reach has written it.
struct Reached {
  std::vector<hosts::Target> hosts;
  std::vector<std::string> ssh_options;
};
// Adds the options of a record to those that were given, which win. A record is a file: only options that neither run a program nor load
// code nor open a way back to this machine are taken from it. Error kUsage: another one is there, and was not given again.
base::Status add_recorded(std::vector<std::string>& given, const std::vector<std::string>& recorded, const std::string& command);
// Error kConfig: run.json does not say, or what it says makes no sense.
base::Result<Reached> reach_of(const base::Json& record);

}  // namespace phalanx::cli
