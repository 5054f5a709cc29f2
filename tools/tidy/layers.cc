#include <fmt/format.h>

#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// The engine stands on what is below the launcher's own folders and is entered by nobody but its main.
const std::set<std::string> kBelowEngine = {"base", "os", "wire"};

// Inside the engine: comm, then siblings that do not know each other, then parallel over optim and checkpoint, then train. Files directly
// in engine/ lie below comm.
const std::map<std::string, std::set<std::string>> kEngine = {
    {"", {}},
    {"comm", {"comm"}},
    {"optim", {"optim", "comm"}},
    {"parallel", {"parallel", "optim", "checkpoint", "comm"}},
    {"data", {"data", "comm"}},
    {"model", {"model", "comm"}},
    {"checkpoint", {"checkpoint", "comm"}},
    {"train", {"train", "parallel", "optim", "data", "model", "checkpoint", "comm"}},
};

// "engine/model/gpt.h" → "model"; "engine/compat.h" → "".
std::string engine_room(const std::vector<std::string>& parts, size_t engine_at) {
  return parts.size() > engine_at + 2 ? parts[engine_at + 1] : "";
}

bool engine_may(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  if (kBelowEngine.contains(to[0])) return true;
  if (to[0] != "engine") return false;
  std::string target = engine_room(to, 0);
  if (from[1].starts_with("main_")) return true;
  auto room = kEngine.find(engine_room(from, 1));
  return target.empty() || (room != kEngine.end() && room->second.contains(target));
}

bool may_include(const std::vector<std::string>& from, const std::vector<std::string>& to, const Layers& layers) {
  if (from[1] == "main_train.cc" || from[1] == "engine") return engine_may(from, to);
  if (from[1].starts_with("main_")) return layers.below.contains(to[0]);
  auto folder = layers.below.find(from[1]);
  return folder != layers.below.end() && folder->second.contains(to[0]);
}

}  // namespace

Layers parse_layers(std::string_view cmake) {
  Layers layers;
  static const std::regex kLine(R"(^\s*phalanx_folder\(([^)]*)\))");
  int line = 0;
  for (const std::string& text : split(cmake, '\n')) {
    ++line;
    std::smatch match;
    if (!std::regex_search(text, match, kLine)) continue;
    std::vector<std::string> names = split(match.str(1), ' ');
    std::set<std::string>& below = layers.below[names[0]];
    below.insert(names[0]);
    for (size_t i = 1; i < names.size(); ++i) {
      auto dependency = layers.below.find(names[i]);
      if (names[i].empty()) continue;
      if (dependency == layers.below.end())
        layers.findings.push_back({"src/CMakeLists.txt", line, "layer", fmt::format("{} is not declared above {}", names[i], names[0])});
      else below.insert(dependency->second.begin(), dependency->second.end());
    }
  }
  return layers;
}

std::vector<Finding> check_includes(const Source& source, const Layers& layers) {
  std::vector<Finding> out;
  const std::vector<std::string>& from = source.parts();
  if (!source.cpp() || from[0] != "src" || from.size() < 2) return out;
  if (from.size() > 2 && from[1] != "engine" && !layers.below.contains(from[1]))
    out.push_back({source.path(), 0, "layer", fmt::format("src/{} has no phalanx_folder line in src/CMakeLists.txt", from[1])});
  for (const Include& include : source.includes()) {
    std::vector<std::string> to = split(include.path, '/');
    if (to.size() < 2) out.push_back({source.path(), include.line, "layer", fmt::format("write \"{}\" from src/", include.path)});
    else if (!may_include(from, to, layers))
      out.push_back({source.path(), include.line, "layer", fmt::format("\"{}\" points up or sideways", include.path)});
  }
  return out;
}

}  // namespace phalanx::tidy
