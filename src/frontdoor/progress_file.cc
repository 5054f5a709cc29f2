// Which file a framework will write its figures to, by its own configuration: the agent then reads them (agent/ranks/progress_reader.h).
//
// LLaMA-Factory: trainer_log.jsonl in output_dir (llamafactory/train/callbacks.py, ff6d4d12e). Lightning's command line: metrics.csv of its
// CSVLogger, which is also what it takes without TensorBoard (lightning/pytorch/cli.py, loggers/csv_logs.py, 2.0.9).
#include <algorithm>

#include "base/text.h"
#include "base/yaml.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using words::tr;

constexpr const char* kVariable = "PHALANX_PROGRESS_FILE";
constexpr const char* kLightningFile = "/version_*/metrics.csv";

base::Json yaml_of(const Door& door, const std::string& path) {
  if (!path.ends_with(".yaml") && !path.ends_with(".yml") && !path.ends_with(".json")) return {};
  base::Result<std::optional<std::string>> text = door.around.file(path);
  if (!text.ok() || !*text) return {};  // the framework says what is wrong with it
  base::Result<base::Yaml> yaml = base::parse_yaml(**text);
  return yaml.ok() && yaml->value.is_object() ? std::move(yaml->value) : base::Json{};
}

base::Json member(const base::Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() ? base::Json{} : *found;
}

// "--output_dir out", "--output_dir=out" and OmegaConf's "output_dir=out"; the last one counts.
std::optional<std::string> typed_value(std::span<const std::string> words, const std::string& name) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(name + "=")) value = words[i].substr(name.size() + 1);
    else if (words[i].starts_with("--" + name + "=")) value = words[i].substr(name.size() + 3);
    else if (words[i] == "--" + name && i + 1 < words.size()) value = words[i + 1];
  }
  return value;
}

// The last --config of Lightning's command line.
std::optional<std::string> lightning_file(const Door& door) {
  const std::optional<std::string> config = typed_value(door.out.argv, "config");
  if (!config) return std::nullopt;
  const base::Json trainer = member(yaml_of(door, *config), "trainer");
  if (!trainer.is_object()) return std::nullopt;
  base::Json logger = member(trainer, "logger");
  if (logger.is_boolean() && !logger.get<bool>()) return std::nullopt;
  if (logger.is_array()) {
    const auto csv = std::find_if(logger.begin(), logger.end(), [](const base::Json& one) {
      return base::get_string(one, "class_path").value_or("").ends_with("CSVLogger");
    });
    if (csv == logger.end()) return std::nullopt;
    logger = base::Json(*csv);
  }
  std::string folder = base::get_string(trainer, "default_root_dir").value_or("."), name = "lightning_logs";
  if (logger.is_object()) {
    if (!base::get_string(logger, "class_path").value_or("").ends_with("CSVLogger")) return std::nullopt;
    const base::Json arguments = member(logger, "init_args");
    folder = base::get_string(arguments, "save_dir").value_or(folder);
    name = base::get_string(arguments, "name").value_or(name);
    if (const std::optional<std::string> version = base::get_string(arguments, "version"))
      return folder + "/" + name + "/" + *version + "/metrics.csv";
  }
  return folder + "/" + name + kLightningFile;
}

std::optional<std::string> llamafactory_file(const Door& door) {
  const auto module = std::find(door.out.argv.begin(), door.out.argv.end(), "llamafactory.launcher");
  if (module == door.out.argv.end()) return std::nullopt;
  const std::span<const std::string> words(module + 1, door.out.argv.end());
  std::optional<std::string> folder = typed_value(words, "output_dir");
  if (!folder && !words.empty()) folder = base::get_string(yaml_of(door, words[0]), "output_dir");
  if (!folder || folder->empty()) return std::nullopt;
  return *folder + "/trainer_log.jsonl";
}

// Without "." and ".."; none: it cannot be told here, or a `*` in it would be taken for another.
std::optional<std::string> settled(const Door& door, const std::string& path) {
  std::string whole = path;
  const std::vector<std::string_view> typed = base::split(path, '/');
  const bool absolute = path.starts_with('/') || std::find(typed.begin(), typed.end(), "..") != typed.end();
  if (absolute && !path.starts_with('/')) whole = door.around.folder() + "/" + path;
  std::vector<std::string_view> parts;
  for (std::string_view part : base::split(std::as_const(whole), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.push_back(part);
    else if (!parts.empty()) parts.pop_back();
  }
  const std::string out = (absolute ? "/" : "") + base::join(parts, "/");
  const bool plain = out.find_first_of(std::string("~$\n\0", 4)) == std::string::npos && out.size() <= 4096;
  const auto stars = std::count(out.begin(), out.end(), '*');
  if (!plain || stars > (out.ends_with(kLightningFile) ? 1 : 0)) return std::nullopt;
  return out;
}

}  // namespace

void find_progress_file(Door& door) {
  if (door.variable(kVariable)) return;  // the user's own
  std::optional<std::string> path = llamafactory_file(door);
  if (!path) path = lightning_file(door);
  if (path) path = settled(door, *path);
  if (!path) return;
  door.set(kVariable, *path);
  door.decide(path->ends_with(".csv") ? "trainer.logger" : "output_dir", "--env " + std::string(kVariable) + "=" + *path,
              tr("step and loss are read from this file"));
}

}  // namespace phalanx::frontdoor
