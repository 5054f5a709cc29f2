// Which variables a run passed on to its hosts, and where each came from: for the plan, for run.json, and so that `phalanx report` finds
// their secrets. Names and origins are recorded; a value never is.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "job/job.h"

namespace phalanx::cli {

// Origins, as run.json has them.
inline constexpr const char* kFromHere = "this machine";  // by the default list (cli/flags/exported_env.h)
inline constexpr const char* kFromExport = "--export";    // this machine's as well, but asked for
inline constexpr const char* kFromPython = "Python environment";
inline constexpr const char* kFromEnv = "--env";
// Of a file: "--env-file PATH".

struct PassedOn {
  std::string name;
  std::string from;
};
// One per name, by name; of several the one whose value the ranks get.
std::vector<PassedOn> passed_on(const job::Job& job);
// [{"name": "HF_TOKEN", "from": "this machine"}, …]
base::Json describe_passed_on(const job::Job& job);
// {"file": "/data/llm/phalanx.yaml", "values": [{"key": "iface", "value": "eth0", "line": 3}, {"key": "env.HF_TOKEN", "line": 5}]}
base::Json describe_project(const job::ProjectUse& project);
// What describe_project wrote; empty where `json` is something else.
job::ProjectUse project_in(const base::Json& json);
// "/data/llm/phalanx.yaml: iface, env.HF_TOKEN"; empty: none was used.
std::string project_line(const job::ProjectUse& project);
// "this machine (--no-export keeps them here): HF_HOME HF_TOKEN", one line per origin.
std::vector<std::string> passed_on_lines(const job::Job& job, base::Language language);
// The content of masks.json; empty where no secret was passed on.
base::Result<std::string> masks_of(const job::Job& job);

}  // namespace phalanx::cli
