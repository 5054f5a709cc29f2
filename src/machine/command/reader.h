// What read_command() (probe.h) works with: the files and paths found so far, within limits. One pass: the command's words, its shell
// scripts and their launch lines, the configurations these name, and what the configurations name. All reads are rooted.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "machine/command/launch_line.h"
#include "machine/probe.h"

namespace phalanx::machine {

class CommandReader {
 public:
  explicit CommandReader(const ProbeRequest& request);
  CommandFacts read();

 private:
  // machine/command/probe.cc: words and scripts.
  void words(const std::vector<std::string>& argv, const std::string& directory, const std::string& file, int64_t line,
             const std::map<std::string, std::string>& exported, bool background, int depth);
  void program(const LaunchLine& launch, int depth);
  void module(const LaunchLine& launch);
  void shell_script(const std::string& text, const std::string& path, const LaunchLine& launch, int depth);
  void outputs(const std::vector<std::string>& targets, const std::string& file, int64_t line, const std::string& directory, bool launches);
  void launcher_options(const LaunchLine& launch);
  void arguments(const LaunchLine& launch);

  // machine/command/configs.cc: configurations.
  void config(const std::string& path, const std::string& role, const std::string& named_by, const std::string& directory);
  void keys(const base::Json& value, const std::string& key, const std::string& file, const std::string& directory, int depth);
  void llamafactory(const base::Json& config, const std::string& file, const std::string& directory);
  void accelerate(const base::Json& config, const std::string& file, const std::string& directory);

  // The file's text as far as it may be kept; null if it was listed before, cannot be read, or the limits are reached.
  const std::string* file(const std::string& path, const std::string& role, const std::string& named_by);
  void path(const std::string& key, const std::string& value, const std::string& role, const std::string& named_by,
            const std::string& directory);
  bool exists(const std::string& path) const;
  std::string absolute(const std::string& value, const std::string& directory) const;

  const ProbeRequest& request_;
  std::string home_;
  CommandFacts facts_;
  std::vector<std::string> texts_;  // of facts_.files, secrets still in them; cut at the end
  std::set<std::string> made_;      // folders that a mkdir of a script makes
  size_t text_bytes_ = 0;
};

// The commit checked out in the repository `folder` lies in, from .git/HEAD without running git; empty: none found.
std::string git_head(const std::string& root, const std::string& folder);

}  // namespace phalanx::machine
