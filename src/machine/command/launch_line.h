// Words of one command → which launcher, with which options of its own, runs which program with which arguments. Pure.
#pragma once

#include <string>
#include <vector>

#include "machine/command/facts.h"

namespace phalanx::machine {

struct Understood {
  LaunchLine line;
  std::string inline_script;  // of `bash -c '…'`
};

// Wrappers in front are taken off: env, nohup, exec, nice, numactl, taskset, timeout, stdbuf, setsid, sudo, conda run, uv run ….
Understood read_launch(const std::vector<std::string>& words);

// The options among a program's arguments, in order: "--a b", "--a=b", "-c b", "a=b"; names without dashes, '-' as '_'. A flag has "".
struct Argument {
  std::string name, value;
  bool option = false;  // else a bare word, in `value`
};
std::vector<Argument> read_arguments(const std::vector<std::string>& arguments);

// Whether a variable or option of that name holds a secret: one of its words is key, token, secret, password ….
bool secret_name(std::string_view name);

}  // namespace phalanx::machine
