#include <fmt/format.h>

#include <regex>

#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// The engine stands on what is below the launcher's own folders and is entered by nobody but its main.
const std::set<std::string> kBelowEngine = {"base", "os", "wire", "words"};

// What of fine-tuning needs no tensors, and who alone may use it.
constexpr std::string_view kBelowTuning = "tune";
const std::set<std::string> kTuning = {"tuning", "finetune"};

// Inside the engine: comm, then siblings that do not know each other, then parallel over optim, then train. Files directly
// in engine/ lie below comm.
const std::map<std::string, std::set<std::string>> kEngine = {
    {"", {}},
    {"comm", {"comm"}},
    {"optim", {"optim", "comm"}},
    {"parallel", {"parallel", "optim", "comm"}},
    {"data", {"data", "comm"}},
    {"model", {"model"}},
    {"checkpoint", {"checkpoint", "comm"}},
    {"tuning", {"tuning", "parallel", "model", "optim", "checkpoint", "comm"}},
    {"finetune", {"finetune", "train", "parallel", "tuning", "optim", "data", "model", "checkpoint", "comm"}},
    {"train", {"train", "parallel", "optim", "data", "model", "checkpoint", "comm"}},
};

// "engine/model/gpt.h" → "model"; "engine/autocast.h" → "".
std::string engine_room(const std::vector<std::string>& parts, size_t engine_at) {
  return parts.size() > engine_at + 2 ? parts[engine_at + 1] : "";
}

bool engine_may(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  if (kBelowEngine.contains(to[0])) return true;
  if (to[0] == kBelowTuning) return from[1].starts_with("main_") || kTuning.contains(engine_room(from, 1));
  if (to[0] != "engine") return false;
  std::string target = engine_room(to, 0);
  if (from[1].starts_with("main_")) return true;
  auto room = kEngine.find(engine_room(from, 1));
  return target.empty() || (room != kEngine.end() && room->second.contains(target));
}

bool may_include(const std::vector<std::string>& from, const std::vector<std::string>& to, const Layers& layers) {
  if (from[1].starts_with("main_train") || from[1] == "engine") return engine_may(from, to);
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

namespace {

// Words of a text, each one that is not blank.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (std::string& word : split(text, ' '))
    if (!word.empty()) out.push_back(std::move(word));
  return out;
}

// Where each folder of the picture leads to by one arrow, and the line it stands in.
struct Picture {
  std::map<std::string, std::set<std::string>> arrows;
  std::map<std::string, int> lines;
};

Picture picture_of(const Source& architecture) {
  static const std::string kArrow = "→";
  Picture picture;
  bool here = false, fence = false;
  int line = 0;
  for (const std::string& text : split(architecture.text(), '\n')) {
    ++line;
    if (text.starts_with("## ")) here = text == "## Layers";
    if (!here) continue;
    if (text.starts_with("```")) {
      if (fence) break;
      fence = true;
    }
    const size_t arrow = text.find(kArrow);
    if (!fence || arrow == std::string::npos) continue;
    for (const std::string& from : words(text.substr(0, arrow))) {
      picture.lines[from] = line;
      for (const std::string& to : words(text.substr(arrow + kArrow.size()))) picture.arrows[from].insert(to);
    }
  }
  return picture;
}

void reach(const Picture& picture, const std::string& from, std::set<std::string>* reached) {
  if (!reached->insert(from).second) return;
  if (auto arrows = picture.arrows.find(from); arrows != picture.arrows.end())
    for (const std::string& to : arrows->second) reach(picture, to, reached);
}

}  // namespace

std::vector<Finding> check_layers_picture(const Source& architecture, const Layers& layers) {
  std::vector<Finding> out;
  std::map<std::string, std::set<std::string>> wanted = layers.below;
  for (const auto& [room, below] : kEngine) {
    if (room.empty()) continue;
    std::set<std::string>& all = wanted["engine/" + room];
    all = kBelowEngine;
    if (kTuning.contains(room)) all.insert(std::string(kBelowTuning));
    for (const std::string& to : below) all.insert("engine/" + to);
  }
  const Picture picture = picture_of(architecture);
  for (const auto& [folder, below] : wanted) {
    std::set<std::string> reached;
    reach(picture, folder, &reached);
    if (reached == below) continue;
    auto line = picture.lines.find(folder);
    out.push_back(
        {architecture.path(), line == picture.lines.end() ? 0 : line->second, "layer",
         fmt::format("the arrows from {} lead to {}, and it may include from {}", folder, fmt::join(reached, " "), fmt::join(below, " "))});
  }
  for (const auto& [folder, line] : picture.lines)
    if (!wanted.contains(folder)) out.push_back({architecture.path(), line, "layer", fmt::format("there is no folder {}", folder)});
  return out;
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
