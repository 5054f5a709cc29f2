// env: starts phalanx-env, which looks at Python environments and repairs them; what concerns hosts is in cli/push/env_hosts.cc.
// docs/design/static-binary.md says why it is a program of its own.
#include <unistd.h>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/flags/verbs.h"
#include "cli/push/env_program.h"

namespace phalanx::cli {
namespace {

// What phalanx-env knows; the others are about hosts.
bool is_passed_on(const FlagRow& row) {
  switch (row.flag) {
    case Flag::kJson:
    case Flag::kDryRun:
    case Flag::kPartial:
    case Flag::kReportFile:
    case Flag::kOldPrefix: return true;
    default: return false;
  }
}

}  // namespace

std::vector<std::string> env_program_arguments(const Invocation& invocation) {
  std::vector<std::string> arguments;
  for (const GivenFlag& flag : invocation.flags) {
    if (!is_passed_on(*flag.row)) continue;
    const std::string name = "--" + std::string(flag.row->name);
    arguments.push_back(flag.row->kind == ValueKind::kNone ? name : name + "=" + flag.value);
  }
  arguments.push_back("--");
  arguments.insert(arguments.end(), invocation.operands.begin(), invocation.operands.end());
  return arguments;
}

base::Result<int> env_verb(const Invocation& invocation) {
  const std::string verb = invocation.operands.empty() ? "" : invocation.operands[0];
  const bool hosts = invocation.has(Flag::kHosts) || invocation.has(Flag::kHostfile);
  if (verb == "push" || verb == "diff" || (verb == "verify" && (hosts || invocation.operands.size() > 2))) {
    TRY_ASSIGN(const RunOptions options, run_options(invocation));
    return env_on_hosts(invocation, options);
  }
  for (const GivenFlag& flag : invocation.flags)
    if (!is_passed_on(*flag.row) && !verb.empty())
      return base::fail(base::ErrorKind::kUsage, fmt::format("env {} has no option {}: it works on this machine", verb, flag.typed))
          .with_hint("phalanx help env");
  TRY_ASSIGN(std::string program, find_env_program());
  std::vector<std::string> arguments = env_program_arguments(invocation);
  std::vector<char*> argv = {const_cast<char*>("phalanx-env")};
  for (std::string& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return base::system_error("execv", program);
}

}  // namespace phalanx::cli
