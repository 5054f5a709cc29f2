// Command lines as people paste them: quotes, continued lines, comments, VAR=value in front, variables of the script around them. Only
// what is needed to find the words of one command: no globs, no loops, no command substitution. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace phalanx::frontdoor {

constexpr size_t kLargestShellText = 1u << 20;  // bytes
constexpr size_t kMostShellWords = 16'384;      // of one command
constexpr size_t kLargestExpansion = 1u << 20;  // bytes of one command's words

struct ShellCommand {
  std::vector<std::pair<std::string, std::string>> assignments;  // of `A=1 B=2 command`, and what was exported before it
  std::vector<std::string> words;                                // without assignments and redirections; empty: assignments only
  std::vector<std::string> unknown;                              // variables without a value; their words keep "${NAME}"
  std::vector<std::string> dropped;                              // redirections and a final &, as they were written
  int line = 1;                                                  // where it begins, from 1
};

// Every simple command of the text, in order, with variables put in that earlier lines have set; pipes, && and ; separate commands. Error
// kConfig, "line 3: …": a quote left open, $( or a backquote, or a limit is passed.
base::Result<std::vector<ShellCommand>> parse_shell(std::string_view text);

}  // namespace phalanx::frontdoor
