// A world of its own for the doors: variables, files and programs that the tests name.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "frontdoor/frontdoor.h"

namespace phalanx::frontdoor {

struct World : Surroundings {
  std::map<std::string, std::string> variables = {{"HOME", "/home/ann"}};
  std::map<std::string, std::string> files;
  std::set<std::string> programs = {"python", "python3"};

  std::optional<std::string> variable(const std::string& name) const override {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  base::Result<std::optional<std::string>> file(const std::string& path) const override {
    auto found = files.find(path);
    return found == files.end() ? std::optional<std::string>() : std::optional<std::string>(found->second);
  }
  std::set<std::string> of_strangers;
  bool only_ours(const std::string& path) const override { return of_strangers.count(path) == 0; }
  bool has_program(const std::string& name) const override { return programs.count(name) > 0; }
  std::string folder() const override { return "/home/ann/project"; }
};

// What a case of tests/data/frontdoor/ holds as its plan: the line of phalanx run, then findings, then decisions.
inline std::string plan_of(const base::Result<Translation>& result) {
  if (!result.ok()) {
    std::string out = "error: " + result.error().message + "\n";
    if (!result.error().cause.empty()) out += "because: " + result.error().cause + "\n";
    if (!result.error().hint.empty()) out += "hint: " + result.error().hint + "\n";
    return out;
  }
  std::vector<std::string> words = {"phalanx", "run"};
  Translation settled = *result;
  settle_node_rank(settled, !settled.hosts.empty() || !settled.hostfile.empty());
  for (const std::string& word : run_options_of(settled)) words.push_back(word);
  words.push_back("--");
  words.insert(words.end(), settled.argv.begin(), settled.argv.end());
  std::string out = "run: " + base::shell_quote(words) + "\n";
  for (const Finding& one : settled.findings) out += "finding: " + one.text.english + "\n";
  for (const Decision& one : settled.decisions)
    out += one.from + " -> " + (one.to.empty() ? "nothing" : one.to) + (one.why.empty() ? "" : "  (" + one.why.english + ")") + "\n";
  return out;
}

}  // namespace phalanx::frontdoor
