// The project file of an invocation: its values become options that the command line does not give.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "cli/flags/command_line.h"
#include "cli/project/project_file.h"

namespace phalanx::cli {

// Finds and reads the file (--project, --no-project), merges it, and says so in one line on standard error unless -q is given. Verbs that
// start or probe nothing (ps, logs, stop, …) warn about a file they cannot use and continue without it.
base::Status use_project(Invocation& invocation);

// Whether the verb takes this key from a project file. Verbs that start or probe take every key they have an option for; those of runs
// that are there, and clean, take only how output is kept and shown, and stop how hosts are reached.
bool takes_from_project(Verb verb, const FlagRow& flag);

// The value of a variable of this machine; none: it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

// Adds the file's values behind those of the command line, which win: an option that is given replaces the file's; of `env`, `env-file`,
// `export` and `ssh-option` both hold, and the command line's win where they disagree. Hosts on the command line also replace what the file
// says about its own list: hostfile, include, exclude, nnodes, spares, and gpus by host. Relative paths start at the file's folder, and
// "~/" at HOME. Error kConfig: a variable without a value in the file that is not set here either. Pure.
base::Status merge_project(const ProjectFile& file, const Lookup& variable, Invocation& invocation);

// "hosts, iface, env (NCCL_DEBUG)": what came from the file, each once; empty: nothing.
std::string taken_from_project(const Invocation& invocation);

}  // namespace phalanx::cli
