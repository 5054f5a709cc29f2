// phalanx-env, the program that knows Python environments (docs/design/static-binary.md), and how the launcher uses it: `env show` and the
// like become it; for hosts it prepares what is sent, and is sent itself.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/run_options.h"
#include "cli/once_per_host.h"

namespace phalanx::cli {

// The flags, each as --NAME or --NAME=VALUE, "--", and the operands: as envcli/request.h reads them.
std::vector<std::string> env_program_arguments(const Invocation& invocation);

// Its path: beside this launcher, or else in PATH. Error kUnfit, with where it belongs.
base::Result<std::string> find_env_program();

// Starts it here with these descriptors and waits for its end; its errors go to ours. Its exit code.
base::Result<int> run_env_program(std::vector<std::string> arguments, const std::vector<std::pair<int, int>>& fds);

// Runs it on every host with these arguments. It is copied to the store of copied code there (docs/formats/sync-store.md) under a name made
// of its content, so only once; errors are those of hosts that could not get it, with no answer from any.
base::Result<OnceAnswers> run_env_program_on_hosts(const std::vector<hosts::Target>& targets, const RunOptions& options,
                                                   const std::vector<std::string>& arguments);

// Its script: each host, told by its NODE_RANK, starts what lies in its own store, and nothing at a path that another host has named, where
// another user of this one could have put a program.
std::string script_of(const std::vector<job::CopiedHost>& hosts, const std::vector<std::string>& arguments);

// A file of this user without a name. Error: no folder can hold it.
base::Result<os::Fd> nameless_file();

// push, verify and diff on hosts (cli/push/env_hosts.cc).
base::Result<int> env_on_hosts(const Invocation& invocation, const RunOptions& options);

}  // namespace phalanx::cli
