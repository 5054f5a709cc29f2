// Shell scripts, read as far as it takes to see what they start: words, quotes, continued lines, redirections, here-documents,
// plain variables. No shell: nothing is run, and what only a shell could know keeps its '$'.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

struct ShellCommand {
  int line = 0;                                    // where it begins, from 1
  std::map<std::string, std::string> assignments;  // VAR=value in front of it
  std::vector<std::string> words;
  std::vector<std::string> outputs;  // targets of >, >>, 2>, &>
  bool background = false;
};

// arguments: $0, $1, …; missing ones and unknown variables stay as written ("$1", "${X}", "$(date)").
// each: called for every simple command, with what the script has exported so far. Reads at most 10,000 commands.
void read_shell(std::string_view text, const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables,
                const std::function<void(const ShellCommand&, const std::map<std::string, std::string>& exported)>& each);

}  // namespace phalanx::machine
