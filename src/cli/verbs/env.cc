// env: starts phalanx-env, which looks at Python environments and repairs them. docs/design/static-binary.md says why it is a program of
// its own.
#include <unistd.h>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/env_program.h"
#include "cli/flags/verbs.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::cli {
namespace {

constexpr const char* kProgram = "phalanx-env";

// Beside this launcher, or else in PATH.
base::Result<std::string> find_env_program() {
  const std::string self = os::self_executable();
  const std::string beside = self.substr(0, self.rfind('/') + 1) + kProgram;
  if (os::exists(beside)) return beside;
  base::Result<std::string> found = os::find_program(kProgram, os::environment_value("PATH"), os::current_folder());
  if (found.ok()) return found;
  return base::fail(base::ErrorKind::kUnfit, "phalanx env needs the program phalanx-env, which is missing")
      .because(fmt::format("it is neither beside {} nor in PATH", self))
      .with_hint(fmt::format("copy phalanx-env of the same package to {}", beside));
}

}  // namespace

std::vector<std::string> env_program_arguments(const Invocation& invocation) {
  std::vector<std::string> arguments;
  for (const GivenFlag& flag : invocation.flags) {
    const std::string name = "--" + std::string(flag.row->name);
    arguments.push_back(flag.row->kind == ValueKind::kNone ? name : name + "=" + flag.value);
  }
  arguments.push_back("--");
  arguments.insert(arguments.end(), invocation.operands.begin(), invocation.operands.end());
  return arguments;
}

base::Result<int> env_verb(const Invocation& invocation) {
  TRY_ASSIGN(std::string program, find_env_program());
  std::vector<std::string> arguments = env_program_arguments(invocation);
  std::vector<char*> argv = {const_cast<char*>(kProgram)};
  for (std::string& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return base::system_error("execv", program);
}

}  // namespace phalanx::cli
