// The cases of tests/data/frontdoor/: command lines, files and variables of the field notes and of the peers' own documents, each with the
// plan that an expert would write. A case:
//
//   === name
//   $ NAME=value torchrun …        one command; it may go on over several lines, up to the next section
//   --- variable NAME=value        of this machine
//   --- file PATH                  and its content
//   --- plan                       what translate makes of it (world.h)
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "world.h"

namespace phalanx::frontdoor {

struct Case {
  std::string name;  // "torchrun.txt: two nodes"
  std::string command;
  std::string plan;
  std::string text;  // all of it but the plan
  World world;
};

inline void add_line(Case& one, std::string& section, const std::string& line) {
  if (section != "plan") one.text += line + "\n";
  if (line.starts_with("$ ")) {
    section = "command";
    one.command = line.substr(2) + "\n";
  } else if (line.starts_with("--- variable ")) {
    const size_t equals = line.find('=');
    one.world.variables[line.substr(13, equals - 13)] = line.substr(equals + 1);
  } else if (line.starts_with("--- without ")) {
    one.world.programs.erase(line.substr(12));
  } else if (line.starts_with("--- ")) {
    section = line.substr(4);
    if (section.starts_with("file ")) one.world.files[section.substr(5)] = "";
  } else if (section == "command") {
    one.command += line + "\n";
  } else if (section == "plan") {
    if (!line.empty()) one.plan += line + "\n";
  } else if (section.starts_with("file ")) {
    one.world.files[section.substr(5)] += line + "\n";
  }
}

inline std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  std::string line, section;
  while (std::getline(file, line)) {
    if (line.starts_with("=== ")) {
      cases.push_back({path.filename().string() + ": " + line.substr(4), "", "", "", {}});
      section.clear();
    } else if (!cases.empty()) {
      add_line(cases.back(), section, line);
    }
  }
  return cases;
}

inline std::vector<Case> all_cases() {
  std::vector<Case> all;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(PHALANX_TEST_DATA "/frontdoor"))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths)
    for (Case& one : read_cases(path)) all.push_back(std::move(one));
  return all;
}

}  // namespace phalanx::frontdoor
