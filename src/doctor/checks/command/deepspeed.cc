// Lints of DeepSpeed's JSON: all but one are rules (codes/rules/configs.yaml).
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/config_rules.h"
#include "doctor/views/command_view.h"

namespace phalanx::doctor {
namespace {

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

constexpr Row kDeepspeedRows[] = {
    {"CMD-DEEPSPEED-KEY", Severity::kWarning, check_config_rules},     {"CMD-DEEPSPEED-BATCH", Severity::kWarning, batch},
    {"CMD-DEEPSPEED-PRECISION", Severity::kError, check_config_rules}, {"CMD-DEEPSPEED-STAGE", Severity::kNote, check_config_rules},
    {"CMD-DEEPSPEED-OFFLOAD", Severity::kWarning, check_config_rules},
};

}  // namespace

std::span<const Row> deepspeed_rows() { return kDeepspeedRows; }

}  // namespace phalanx::doctor
