// Command lines of other launchers, as they are typed: `phalanx [options of run] [VAR=value…] torchrun …`, and phalanx started through a
// link named torchrun, accelerate, deepspeed or llamafactory-cli. src/frontdoor/ translates; here are the files, the environment and the
// screen.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/language.h"
#include "base/result.h"
#include "cli/flags/command_line.h"
#include "frontdoor/frontdoor.h"

namespace phalanx::cli {

struct FrontDoor {
  frontdoor::Translation translation;
  std::vector<std::string> args;  // of phalanx: {"run", options…, "--", command…}
};

// program: argv[0]. None: the words are no line of another launcher. Errors are those of its translation.
base::Result<std::optional<FrontDoor>> open_front_door(std::string_view program, std::span<const std::string> args);

// The launcher whose help a line asks for: `phalanx torchrun --help`, or `torchrun --help` where torchrun is a link to phalanx.
std::optional<std::string> launcher_asked_for_help(std::string_view program, std::span<const std::string> args);

// A pasted line, or a shell script if `from` is the path of a file: the first command that a door knows. args begin with "init"; the
// command is not among them.
base::Result<FrontDoor> translate_text(const std::string& from);

// With the project file merged in: several nodes need their hosts, or an allocation of Slurm that names them, or a line that is started on
// every machine and says which one this is; that then becomes --node-rank in both. Error kUsage.
base::Status settle_hosts(FrontDoor& door, Invocation& invocation);

// `phalanx run … -- …`, without secrets.
std::string run_line(const FrontDoor& door);
// Every decision, one a line, and the equivalent line of phalanx run.
std::string decisions_text(const FrontDoor& door, base::Language language);
// "warning: …", with what to do.
std::string findings_text(const FrontDoor& door, base::Language language);
// What a start prints: findings and the equivalent line on standard error; with --dry-run the decisions too, on standard output unless
// that is to be JSON. Nothing with --quiet but findings.
void show(const FrontDoor& door, const Invocation& invocation);

}  // namespace phalanx::cli
