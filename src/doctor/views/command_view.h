// What checks of the user's own files work with: each file once however many hosts have it, configurations parsed, scripts in lines.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doctor/catalogue.h"

namespace phalanx::doctor {

// A file as some hosts have it; hosts whose content differs have an entry of their own. Files that could not be read are left out.
struct UserFile {
  const machine::CommandFile* file;
  std::vector<size_t> hosts;
};
std::vector<UserFile> user_files(const Situation& situation, std::string_view role);

struct UserConfig {
  UserFile file;
  base::Json value;                  // an object; files that are none, or not well formed, are left out
  std::map<std::string, int> lines;  // of YAML keys
  // "train.yaml:9" for a key whose line is known, else "train.yaml".
  std::string place(const Situation& situation, const std::string& key) const;
};
std::vector<UserConfig> user_configs(const Situation& situation, std::string_view role);
// Follows "zero_optimization.stage"; null if it is not there.
const base::Json* value_at(const base::Json& object, std::string_view path);
std::optional<int64_t> int_at(const base::Json& object, std::string_view path);

// A launch as some hosts have it (they differ only where the hosts' scripts do).
struct UserLaunch {
  const machine::LaunchLine* line;
  std::vector<size_t> hosts;
};
std::vector<UserLaunch> user_launches(const Situation& situation);
bool is_launcher(const machine::LaunchLine& line);  // starts ranks of its own: torchrun, accelerate, deepspeed …
// For the program of that launch on that host: set in front of it, else as in Situation::variable.
std::optional<std::string> variable(const Situation& situation, const machine::LaunchLine& line, size_t host, const std::string& name);
// "the command", "run.sh:12".
Words place(const Situation& situation, const machine::LaunchLine& line);

// Relative to the job's folder where it lies below it.
std::string shown(const Situation& situation, const std::string& path);
// On the hosts, or of the job as a whole where all probed hosts are meant.
void tell(Findings& findings, const Situation& situation, const std::vector<size_t>& hosts, Words evidence, std::string fix = "");
std::string host_list(const Situation& situation);  // "gpu01,gpu02", for a -H

// A line of Python without its comment; inside a triple-quoted text none is given.
struct CodeLine {
  int number = 0;
  int indent = 0;
  std::string text;  // trimmed
};
std::vector<CodeLine> code_lines(const std::string& python);
// The first line that holds `word` not preceded by a letter, digit or '_'; null: none.
const CodeLine* line_with(const std::vector<CodeLine>& lines, std::string_view word);

bool whole_number(std::string_view text);

}  // namespace phalanx::doctor
