// Lints of DeepSpeed's JSON, and what its stages mean.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/known_keys.h"
#include "doctor/rows_command.h"

namespace doctor {
namespace {

void keys(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "deepspeed")) {
    auto misspelt = [&](const std::string& section, const base::Json& object, const std::vector<std::string>& known) {
      for (const Misspelt& m : misspelt_keys(object, known)) {
        std::string name = shown(s, config.file.file->path), key = section + m.key;
        tell(findings, s, config.file.hosts,
             {fmt::format("{}: {} is unknown; {} was probably meant", name, key, m.meant),
              fmt::format("{}：未知的键 {}；大概想写 {}", name, key, m.meant)},
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
         {fmt::format("{}: train_batch_size {} is not {} × {} × {} ranks = {}", name, *total, *micro, *steps, s.job.world, product),
          fmt::format("{}：train_batch_size 为 {}，不等于 {} × {} × {} 个 rank = {}", name, *total, *micro, *steps, s.job.world, product)},
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
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: fp16.enabled and bf16.enabled are both true", name),
          fmt::format("{}：fp16.enabled 与 bf16.enabled 同时为 true", name)});
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
  static constexpr base::Bilingual kMeaning[] = {
      {"nothing is split", "不切分"},
      {"optimizer states are split; gradients and parameters are whole on every rank", "切分优化器状态；每个 rank 仍有完整的梯度与参数"},
      {"optimizer states and gradients are split; parameters are whole on every rank", "切分优化器状态与梯度；每个 rank 仍有完整的参数"},
      {"optimizer states, gradients and parameters are split", "优化器状态、梯度、参数全部切分"}};
  for (const Stage& stage : stages(s)) {
    if (stage.stage < 0 || stage.stage > 3) continue;
    const base::Bilingual& meaning = kMeaning[stage.stage];
    tell(findings, s, stage.hosts,
         {fmt::format("{}: ZeRO stage {}: {}", stage.where, stage.stage, meaning.english),
          fmt::format("{}：ZeRO stage {}：{}", stage.where, stage.stage, meaning.chinese)});
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
        tell(findings, s, config.file.hosts,
             {fmt::format("{}: {} to {} with stage {}; it needs stage {}", name, what, device, stage, least),
              fmt::format("{}：{} 到 {}，但 stage 为 {}；至少需要 stage {}", name, what, device, stage, least)});
      else if (device == "nvme" && !section->contains("nvme_path"))
        tell(findings, s, config.file.hosts,
             {fmt::format("{}: {} to nvme without nvme_path", name, what), fmt::format("{}：{} 到 nvme，但没有 nvme_path", name, what)});
    }
  }
}

constexpr Row kDeepspeedRows[] = {
    {"CMD-DEEPSPEED-KEY",
     Severity::kWarning,
     Group::kCommand,
     {"a key of a DeepSpeed configuration is misspelt", "DeepSpeed 配置中有拼错的键"},
     {"Are the keys of the DeepSpeed JSON known to it?", "DeepSpeed JSON 中的键是否都是它认识的？"},
     {"At the top level an unknown key is ignored without a word: the default is used. In zero_optimization it is refused: \"Extra inputs "
      "are not "
      "permitted\".",
      "顶层的未知键会被悄悄忽略，用的是默认值；写在 zero_optimization 里则被拒绝：\"Extra inputs are not permitted\"。"},
     {"Correct the key.\n$ grep -n zero_optimization <config>", "改正键名。\n$ grep -n zero_optimization <config>"},
     "deepspeed/runtime/constants.py; deepspeed/runtime/zero/config.py",
     keys},
    {"CMD-DEEPSPEED-BATCH",
     Severity::kWarning,
     Group::kCommand,
     {"DeepSpeed's batch sizes do not multiply up", "DeepSpeed 的批大小对不上"},
     {"Is train_batch_size = micro batch × accumulation × ranks?", "train_batch_size 是否等于 micro batch × 累积步数 × rank 数？"},
     {"\"AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * "
      "world_size\", "
      "after the model is loaded. With tensor or pipeline parallelism the ranks to count are those of data parallelism.",
      "模型加载之后才报 \"AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
      "gradient_acc_step * "
      "world_size\"。使用张量或流水线并行时，rank 数应只算数据并行的份数。"},
     {"Give two of the three; DeepSpeed computes the third.\n$ grep -nE 'batch_size|accumulation' <config>",
      "三者只写两个，剩下的由 DeepSpeed 推算。\n$ grep -nE 'batch_size|accumulation' <config>"},
     "deepspeed/runtime/config.py: _batch_assertion",
     batch},
    {"CMD-DEEPSPEED-PRECISION",
     Severity::kError,
     Group::kCommand,
     {"DeepSpeed is told both fp16 and bf16", "DeepSpeed 同时启用了 fp16 与 bf16"},
     {"Is at most one of fp16 and bf16 enabled?", "fp16 与 bf16 是否至多启用一个？"},
     {"\"AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled\" on every rank.",
      "每个 rank 都报 \"AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled\"。"},
     {"Keep bf16 on compute capability 8.0 and newer, fp16 on older cards.\n$ nvidia-smi --query-gpu=name,compute_cap --format=csv",
      "计算能力 8.0 及以上用 bf16，较老的卡用 fp16。\n$ nvidia-smi --query-gpu=name,compute_cap --format=csv"},
     "deepspeed/runtime/config.py",
     precision},
    {"CMD-DEEPSPEED-STAGE",
     Severity::kNote,
     Group::kCommand,
     {"what the ZeRO stage splits", "ZeRO stage 切分的内容"},
     {"Which ZeRO stage is asked for, and what does it split?", "用的是哪个 ZeRO stage？它切分什么？"},
     {"Stage 1 splits optimizer states, stage 2 gradients too, stage 3 parameters too. Some notes tell it the other way round (stage 1: "
      "parameters, stage 2: optimizer states). Per rank with Adam in mixed precision: 16 bytes a parameter without ZeRO; 4 + 12/N with "
      "stage 1, "
      "2 + 14/N with stage 2, 16/N with stage 3, N the ranks.",
      "stage 1 切分优化器状态，stage 2 再切分梯度，stage 3 再切分参数。有些笔记写反了（stage 1 切参数、stage 2 切优化器状态）。混合精度 "
      "Adam 下每个 rank "
      "每个参数占用：不用 ZeRO 16 字节；stage 1 为 4 + 12/N，stage 2 为 2 + 14/N，stage 3 为 16/N，N 为 rank 数。"},
     {"See which stage fits before trying.\n$ phalanx fit <model>/config.json -H <hosts>",
      "先算一下哪个 stage 放得下。\n$ phalanx fit <model>/config.json -H <hosts>"},
     "deepspeed/runtime/zero/config.py: ZeroStageEnum; arXiv 1910.02054",
     stage_meaning},
    {"CMD-DEEPSPEED-OFFLOAD",
     Severity::kWarning,
     Group::kCommand,
     {"an offload cannot take effect", "offload 设置无法生效"},
     {"Does each offload have the ZeRO stage and the path it needs?", "每个 offload 是否满足所需的 ZeRO stage 与路径？"},
     {"offload_param is valid only with stage 3, offload_optimizer from stage 1 on; nvme needs nvme_path. Otherwise the memory that was to "
      "be "
      "saved is not, and the job runs out of it.",
      "offload_param 只在 stage 3 有效，offload_optimizer 需要 stage 1 及以上；nvme 还需要 "
      "nvme_path。否则想省的显存并没有省下来，结果显存不足。"},
     {"Raise the stage, or take the section out.\n$ phalanx fit <model>/config.json",
      "提高 stage，或删掉该段。\n$ phalanx fit <model>/config.json"},
     "deepspeed/runtime/zero/config.py",
     offload},
};

}  // namespace

std::span<const Row> deepspeed_rows() { return kDeepspeedRows; }

}  // namespace doctor
