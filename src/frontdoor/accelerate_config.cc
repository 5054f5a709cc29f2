#include "frontdoor/accelerate_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "base/yaml.h"
#include "frontdoor/peer_flags.h"

namespace phalanx::frontdoor {
namespace {

struct Section {
  std::string_view name;
  std::string_view prefix;  // put in front of keys that lack it
};
constexpr std::array<Section, 7> kSections = {{{"deepspeed_config", ""},
                                               {"fsdp_config", "fsdp_"},
                                               {"fp8_config", "fp8_"},
                                               {"dynamo_config", "dynamo_"},
                                               {"megatron_lm_config", ""},
                                               {"parallelism_config", ""},
                                               {"mpirun_config", ""}}};
constexpr std::string_view kKeys =
    "compute_environment distributed_type mixed_precision use_cpu debug num_processes machine_rank num_machines gpu_ids "
    "main_process_ip main_process_port rdzv_backend same_network main_training_function enable_cpu_affinity downcast_bf16 tpu_name "
    "tpu_zone tpu_use_cluster tpu_use_sudo command_file commands tpu_vm tpu_env fp16 dynamo_backend use_mps_device";
constexpr std::string_view kTypes = "NO MULTI_GPU MULTI_CPU DEEPSPEED FSDP MEGATRON_LM";

std::string python_text(const base::Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, base::Json::error_handler_t::replace);
}

std::string dashed(std::string_view key) { return base::replace_all(key, "_", "-"); }

class ConfigReader {
 public:
  ConfigReader(const base::Yaml& yaml, std::string_view path) : yaml_(yaml), path_(path) {}

  base::Result<AccelerateConfig> read() {
    if (!yaml_.value.is_object()) return at("", "the file is no mapping of keys", "write it with accelerate config");
    for (const auto& [key, value] : yaml_.value.items()) TRY(take(key, value));
    auto type = out_.values.find("distributed-type");
    if (type == out_.values.end())
      return at("", "distributed_type is missing", "add distributed_type: MULTI_GPU, DEEPSPEED, FSDP, MEGATRON_LM, MULTI_CPU or NO");
    if (!base::is_listed(type->second, kTypes))
      return at("distributed_type", fmt::format("distributed_type {} cannot be started here", base::quote(type->second)),
                "Phalanx starts NO, MULTI_GPU, MULTI_CPU, DEEPSPEED, FSDP and MEGATRON_LM");
    return std::move(out_);
  }

 private:
  int line_of(const std::string& key) const {
    auto found = yaml_.lines.find(key);
    return found == yaml_.lines.end() ? 1 : found->second;
  }
  base::Error at(const std::string& key, std::string_view what, std::string hint) const {
    return base::fail(base::ErrorKind::kConfig, fmt::format("{}:{}: {}", path_, line_of(key), what)).with_hint(std::move(hint));
  }

  void put(const std::string& key, const base::Json& value, const std::string& place) {
    if (value.is_null()) return;
    const std::string text = python_text(value);
    if (text == "None") return;
    out_.values[dashed(key)] = text;
    out_.lines[dashed(key)] = line_of(place);
  }

  base::Status take(const std::string& key, const base::Json& value) {
    auto section = std::find_if(kSections.begin(), kSections.end(), [&](const Section& one) { return one.name == key; });
    if (section != kSections.end()) return take_section(*section, value);
    if (!base::is_listed(key, kKeys)) {
      const std::vector<std::string_view> keys = base::split(kKeys, ' ');
      std::vector<std::string> names(keys.begin(), keys.end());
      for (const Section& one : kSections) names.emplace_back(one.name);
      auto near = base::closest(key, names);
      return at(key, fmt::format("unknown key {}; accelerate refuses the file", base::quote(key)),
                near ? fmt::format("did you mean {}?", *near) : "remove it");
    }
    const bool list = value.is_array() && value.empty();
    if (value.is_structured() && !list)
      return at(key, fmt::format("{} is not a single value", key),
                key.starts_with("tpu") ? "Phalanx starts no TPU jobs" : "write one value");
    if (list) return base::ok();
    if (key == "compute_environment" && python_text(value) != "LOCAL_MACHINE" && !value.is_null())
      return at(key, fmt::format("compute_environment {} cannot be started here", base::quote(python_text(value))), "write LOCAL_MACHINE");
    if (key.starts_with("tpu_") && !value.is_null() && value != base::Json(false))
      return at(key, fmt::format("{} is set, but Phalanx starts no TPU jobs", key), "remove it");
    if (key == "fp16" && value == base::Json(true) && !yaml_.value.contains("mixed_precision")) put("mixed_precision", "fp16", key);
    put(key, value, key);
    return base::ok();
  }

  base::Status take_section(const Section& section, const base::Json& value) {
    if (value.is_null()) return base::ok();
    const std::string name(section.name);
    if (!value.is_object()) return at(name, fmt::format("{} is no mapping of keys", name), "write its keys below it, indented");
    for (const auto& [key, one] : value.items()) {
      const std::string place = name + "." + key;
      if (name == "deepspeed_config") out_.deepspeed_fields.push_back(key);
      if (name == "parallelism_config") out_.has_parallelism = true;
      const std::string full = key.starts_with(section.prefix) ? key : std::string(section.prefix) + key;
      bool known = false;
      for (const PeerFlag& flag : accelerate_flags()) known = known || flag.name() == dashed(full);
      if (!known) out_.unused.push_back(fmt::format("{}:{}: {}", path_, line_of(place), place));
      else put(full, one, place);
    }
    return base::ok();
  }

  const base::Yaml& yaml_;
  std::string path_;
  AccelerateConfig out_;
};

}  // namespace

base::Result<AccelerateConfig> parse_accelerate_config(std::string_view text, std::string_view path) {
  base::Result<base::Yaml> yaml = base::parse_yaml(text);
  if (!yaml.ok()) {
    base::Error error = std::move(yaml).error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return ConfigReader(*yaml, path).read();
}

}  // namespace phalanx::frontdoor
