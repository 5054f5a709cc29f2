// Lints of DeepSpeed's JSON, and what its stages mean.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"
#include "doctor/views/known_keys.h"

namespace phalanx::doctor {
namespace {

void keys(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "deepspeed")) {
    auto misspelt = [&](const std::string& section, const base::Json& object, const std::vector<std::string>& known) {
      for (const Misspelt& m : misspelt_keys(object, known)) {
        std::string name = shown(s, config.file.file->path), key = section + m.key;
        tell(findings, s, config.file.hosts, tr("{}: {} is unknown; {} was probably meant", name, key, m.meant),
             fmt::format("sed -i 's/\"{}\"/\"{}\"/' {}", m.key, m.meant, base::shell_quote(config.file.file->path)));
      }
    };
    misspelt("", config.value, deepspeed_keys());
    if (const base::Json* zero = value_at(config.value, "zero_optimization")) misspelt("zero_optimization.", *zero, deepspeed_zero_keys());
  }
}

void batch(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "deepspeed")) {
    auto total = int_at(config.value, "train_batch_size"), micro = int_at(config.value, "train_micro_batch_size_per_gpu");
    auto steps = int_at(config.value, "gradient_accumulation_steps");
    constexpr int64_t kMany = 1'000'000'000;
    if (!total || !micro || !steps || s.job.world < 1 || *micro < 1 || *steps < 1 || *micro > kMany || *steps > 1000) continue;
    const int64_t product = *micro * *steps * s.job.world;
    if (*total == product) continue;
    std::string name = shown(s, config.file.file->path);
    tell(findings, s, config.file.hosts,
         tr("{}: train_batch_size {} is not {} × {} × {} ranks = {}", name, *total, *micro, *steps, s.job.world, product),
         fmt::format("sed -i 's/\"train_batch_size\": *[0-9]*/\"train_batch_size\": {}/' {}", product,
                     base::shell_quote(config.file.file->path)));
  }
}

void precision(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "deepspeed")) {
    const base::Json* half = value_at(config.value, "fp16.enabled");
    const base::Json* brain = value_at(config.value, "bf16.enabled");
    if (!brain) brain = value_at(config.value, "bfloat16.enabled");
    if (!half || !brain || *half != true || *brain != true) continue;
    std::string name = shown(s, config.file.file->path);
    tell(findings, s, config.file.hosts, tr("{}: fp16.enabled and bf16.enabled are both true", name));
  }
}

struct Stage {
  std::string where;
  int64_t stage = 0;
  std::vector<size_t> hosts;
};
std::vector<Stage> stages(const Situation& s) {
  std::vector<Stage> all;
  for (const UserConfig& config : user_configs(s, "deepspeed"))
    if (auto stage = int_at(config.value, "zero_optimization.stage"))
      all.push_back({config.place(s, "zero_optimization.stage"), *stage, config.file.hosts});
  for (const UserConfig& config : user_configs(s, "accelerate"))
    if (auto stage = int_at(config.value, "deepspeed_config.zero_stage"))
      all.push_back({config.place(s, "deepspeed_config.zero_stage"), *stage, config.file.hosts});
  return all;
}

void stage_meaning(const Situation& s, Findings& findings) {
  static constexpr words::Text kMeaning[] = {words::Text{"nothing is sharded"},
                                             words::Text{"optimizer states are sharded; every rank holds all gradients and parameters"},
                                             words::Text{"optimizer states and gradients are sharded; every rank holds all parameters"},
                                             words::Text{"optimizer states, gradients and parameters are sharded"}};
  for (const Stage& stage : stages(s)) {
    if (stage.stage < 0 || stage.stage > 3) continue;
    const words::Text& meaning = kMeaning[stage.stage];
    tell(findings, s, stage.hosts, tr("{}: ZeRO stage {}: {}", stage.where, stage.stage, meaning));
  }
}

void offload(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "deepspeed")) {
    auto stage = int_at(config.value, "zero_optimization.stage").value_or(0);
    std::string name = shown(s, config.file.file->path);
    for (const char* what : {"offload_param", "offload_optimizer"}) {
      const base::Json* section = value_at(config.value, fmt::format("zero_optimization.{}", what));
      if (!section) continue;
      std::string device = base::get_string(*section, "device").value_or("none");
      const int64_t least = std::string_view(what) == "offload_param" ? 3 : 1;
      if (device != "cpu" && device != "nvme") continue;
      if (stage < least)
        tell(findings, s, config.file.hosts, tr("{}: {} to {} with stage {}; it needs stage {}", name, what, device, stage, least));
      else if (device == "nvme" && !section->contains("nvme_path"))
        tell(findings, s, config.file.hosts, tr("{}: {} to nvme without nvme_path", name, what));
    }
  }
}

constexpr Row kDeepspeedRows[] = {
    {"CMD-DEEPSPEED-KEY", Severity::kWarning, keys},          {"CMD-DEEPSPEED-BATCH", Severity::kWarning, batch},
    {"CMD-DEEPSPEED-PRECISION", Severity::kError, precision}, {"CMD-DEEPSPEED-STAGE", Severity::kNote, stage_meaning},
    {"CMD-DEEPSPEED-OFFLOAD", Severity::kWarning, offload},
};

}  // namespace

std::span<const Row> deepspeed_rows() { return kDeepspeedRows; }

}  // namespace phalanx::doctor
