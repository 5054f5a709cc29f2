// Which Python a command would run, and in which environment, without starting it: the rules of execve(2) for the program, of
// Modules/getpath.py for the prefix, of Lib/site.py for the folders searched.
#pragma once

#include <string>
#include <vector>

#include "machine/probe.h"
#include "machine/rooted.h"

namespace phalanx::machine {

struct PythonEnvironment {
  std::string program;                     // the file argv[0] stands for, absolute
  std::string program_error;               // why there is none
  bool bad_first_line = false;             // it is a script, and its interpreter is missing
  std::string interpreter;                 // links followed
  std::string prefix;                      // of the environment
  std::string base_prefix;                 // where its standard library lies: another folder than prefix for a venv
  std::string kind;                        // "conda", "venv", "system", "" (any other installation)
  std::string version;                     // "3.11.2"; "3.11" if no more is known
  bool assumed = false;                    // the command is no Python program (a shell script, or none given): the Python of PATH
  std::vector<std::string> site_packages;  // in the order of sys.path: PYTHONPATH, user site, site-packages, their .pth lines
  std::string user_site;                   // one of them, if in use
};

PythonEnvironment find_python_environment(const Rooted& files, const ProbeRequest& request);

// --- its steps, each usable alone -----------------------------------------------------------------------------------------
// The command without what only starts it (env, nice, numactl, timeout, conda run …), and the PATH it would be looked up in.
struct BareCommand {
  std::vector<std::string> words;
  std::string path;
  std::string program;  // found, or empty with `error`
  std::string error;
  bool bad_first_line = false;
};
BareCommand find_bare_command(const Rooted& files, const ProbeRequest& request);

// The interpreter the file would run: the file itself if it is a Python, else by its first line ("#!", env, "'''exec'"), through
// pyenv's shims. Empty: not a Python program. flags: what stands behind the interpreter in that line.
std::string interpreter_of(const Rooted& files, const ProbeRequest& request, const std::string& program, const std::string& path,
                           std::string& flags);
std::string find_in_path(const Rooted& files, std::string_view name, std::string_view path, const std::string& directory);
std::string pyenv_target(const Rooted& files, const ProbeRequest& request, const std::string& shim);
bool is_python_name(std::string_view file);  // "python", "python3", "python3.11", "pypy3"

// "3.11.9" of the interpreter in `base`, by what lies on disk; minor is "3.11".
std::string python_version(const Rooted& files, const std::string& interpreter, const std::string& base, const std::string& minor);

}  // namespace phalanx::machine
