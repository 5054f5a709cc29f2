// Configurations the command names: which kind they are, which further files and paths they name.
#include "base/text.h"
#include "base/yaml.h"
#include "machine/command/paths.h"
#include "machine/command/reader.h"

namespace phalanx::machine {
namespace {

constexpr int kMaxDepth = 16;

base::Json parse(const std::string& path, const std::string& text) {
  if (path.ends_with(".json")) {
    auto json = base::parse_json(text);
    return json.ok() ? std::move(json).value() : base::Json();
  }
  auto yaml = base::parse_yaml(text);
  return yaml.ok() ? std::move(yaml->value) : base::Json();
}

// What a configuration is, by its keys, where its name did not say.
std::string role_by_content(const base::Json& c) {
  if (!c.is_object()) return "config";
  if (c.contains("zero_optimization") || c.contains("train_micro_batch_size_per_gpu")) return "deepspeed";
  if (c.contains("distributed_type") && (c.contains("num_processes") || c.contains("compute_environment"))) return "accelerate";
  if (c.contains("finetuning_type") || (c.contains("stage") && c.contains("template"))) return "llamafactory";
  auto trainer = c.find("trainer");
  if (trainer != c.end() && trainer->is_object() &&
      (trainer->contains("devices") || trainer->contains("accelerator") || trainer->contains("num_nodes")))
    return "lightning";
  return "config";
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

void CommandReader::config(const std::string& path, const std::string& role, const std::string& named_by, const std::string& directory) {
  const std::string* found = file(path, role, named_by);
  if (!found) return;
  const size_t index = facts_.files.size() - 1;
  const base::Json value = parse(path, *found);
  if (role == "config") facts_.files[index].role = role_by_content(value);
  if (!value.is_object()) return;
  const std::string kind = facts_.files[index].role;
  keys(value, "", path, directory, 0);
  if (kind == "llamafactory") llamafactory(value, path, directory);
  if (kind == "accelerate") accelerate(value, path, directory);
}

void CommandReader::keys(const base::Json& value, const std::string& key, const std::string& file_name, const std::string& directory,
                         int depth) {
  if (depth > kMaxDepth) return;
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end(); ++it)
      if (!secret_name(it.key())) keys(it.value(), it.key(), file_name, directory, depth + 1);
  } else if (value.is_array()) {
    for (const base::Json& one : value) keys(one, key, file_name, directory, depth + 1);
  } else if (value.is_string()) {
    path(key, value.get_ref<const std::string&>(), path_role(key), key + " in " + base_name(file_name), directory);
  }
}

void CommandReader::llamafactory(const base::Json& config_value, const std::string& file_name, const std::string& directory) {
  if (auto deepspeed = base::get_string(config_value, "deepspeed"); deepspeed && looks_like_path(*deepspeed))
    config(absolute(*deepspeed, directory), "deepspeed", "deepspeed: in " + base_name(file_name), directory);
  auto names = base::get_string(config_value, "dataset");
  if (!names) return;
  std::string named = base::get_string(config_value, "dataset_dir").value_or("data");
  if (!looks_like_path(named)) return;  // "ONLINE", "REMOTE:org/name"
  std::string folder = absolute(named, directory);
  const std::string* text = file(folder + "/dataset_info.json", "dataset_info", "dataset_dir in " + base_name(file_name));
  if (!text) return;
  auto info = base::parse_json(*text);
  if (!info.ok() || !info->is_object()) return;
  for (std::string_view name : base::split(*names, ',')) {
    auto entry = info->find(std::string(base::trim(name)));
    if (entry == info->end()) continue;
    if (auto data = base::get_string(*entry, "file_name"))
      path("file_name", *data, "input", "file_name of " + std::string(base::trim(name)) + " in dataset_info.json", folder);
  }
}

void CommandReader::accelerate(const base::Json& config_value, const std::string& file_name, const std::string& directory) {
  auto found = config_value.find("deepspeed_config");
  if (found == config_value.end()) return;
  if (auto name = base::get_string(*found, "deepspeed_config_file"); name && looks_like_path(*name))
    config(absolute(*name, directory), "deepspeed", "deepspeed_config_file in " + base_name(file_name), directory);
  if (auto name = base::get_string(*found, "deepspeed_hostfile"); name && looks_like_path(*name))
    file(absolute(*name, directory), "hostfile", "deepspeed_hostfile in " + base_name(file_name));
}

}  // namespace phalanx::machine
