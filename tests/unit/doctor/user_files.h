// Puts files and launch lines of a user into a situation, on all hosts alike or on one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "cases.h"

namespace phalanx::doctor::test {

inline machine::CommandFile user_file(const std::string& name, const std::string& role, const std::string& text) {
  machine::CommandFile f;
  f.path = name[0] == '/' ? name : "/home/train/work/" + name;
  f.role = role;
  f.named_by = "the command";
  f.exists = true;
  f.size = static_cast<int64_t>(text.size());
  f.sha256 = base::sha256_hex(text);
  f.text = text;
  return f;
}

inline void give(Situation& s, const std::string& name, const std::string& role, const std::string& text) {
  for (HostView& h : s.hosts) h.facts.command.files.push_back(user_file(name, role, text));
}
inline machine::CommandFile& file_on(Situation& s, size_t host, const std::string& name) {
  for (machine::CommandFile& f : s.hosts[host].facts.command.files)
    if (f.path.ends_with("/" + name)) return f;
  return s.hosts[host].facts.command.files.emplace_back();
}

inline machine::LaunchLine launch_line(const std::string& launcher, const std::string& program) {
  machine::LaunchLine l;
  l.launcher = launcher;
  l.program = program;
  l.directory = "/home/train/work";
  return l;
}
inline void give(Situation& s, const machine::LaunchLine& line) {
  for (HostView& h : s.hosts) {
    h.facts.command.launches.push_back(line);
    h.facts.command.launcher = line.launcher;
  }
}
// A line of run.sh.
inline machine::LaunchLine in_script(machine::LaunchLine line, const std::map<std::string, std::string>& variables) {
  line.file = "/home/train/work/run.sh";
  line.line = 8;
  line.variables = variables;
  return line;
}

std::vector<Case> command_config_cases();
std::vector<Case> command_python_cases();

}  // namespace phalanx::doctor::test
