// Hints from configurations: the global batch, preparation of data, what ZeRO-3 gathers, where offload puts it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/rows_command.h"
#include "host/launch_line.h"

namespace doctor {
namespace {

constexpr int64_t kMillion = 1'000'000;

void say_batch(const Situation& s, Findings& findings, const std::vector<size_t>& hosts, const std::string& where, int64_t each,
               int64_t steps) {
  if (each < 1 || steps < 1 || each > kMillion || steps > kMillion) return;
  const int64_t all = each * steps * s.job.world;
  tell(findings, s, hosts,
       {fmt::format("{}: {} per rank × {} ranks × {} accumulated = {} samples per optimizer step", where, each, s.job.world, steps, all),
        fmt::format("{}：每个 rank {} × {} 个 rank × 累积 {} 步 = 每次参数更新 {} 个样本", where, each, s.job.world, steps, all)});
}

void batch(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserConfig& config : user_configs(s, "llamafactory"))
    if (auto each = int_at(config.value, "per_device_train_batch_size"))
      say_batch(s, findings, config.file.hosts, config.place(s, "per_device_train_batch_size"), *each,
                int_at(config.value, "gradient_accumulation_steps").value_or(1));
  for (const UserConfig& config : user_configs(s, "deepspeed"))
    if (auto each = int_at(config.value, "train_micro_batch_size_per_gpu"))
      say_batch(s, findings, config.file.hosts, config.place(s, "train_micro_batch_size_per_gpu"), *each,
                int_at(config.value, "gradient_accumulation_steps").value_or(1));
  for (const UserLaunch& launch : user_launches(s)) {
    std::optional<int64_t> each;
    int64_t steps = 1;
    std::string name;
    for (const host::Argument& a : host::read_arguments(launch.line->arguments)) {
      if (!whole_number(a.value)) continue;
      if (a.name == "gradient_accumulation_steps" || a.name == "grad_accum") steps = std::stoll(a.value);
      if (a.name != "per_device_train_batch_size" && a.name != "micro_batch_size" && a.name != "batch_size") continue;
      each = std::stoll(a.value);
      name = a.name;
    }
    if (each) say_batch(s, findings, launch.hosts, "--" + name, *each, steps);
  }
}

void preprocess_workers(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    auto given = int_at(config.value, "preprocessing_num_workers");
    if (!config.value.contains("dataset") || (!given && config.value.contains("preprocessing_num_workers"))) continue;
    int64_t cpus = 0;
    for (size_t h : config.file.hosts)
      if (int64_t here = s.hosts[h].facts.machine.cpus_usable; here > 0) cpus = cpus == 0 ? here : std::min(cpus, here);
    const int64_t used = given.value_or(1);
    if (cpus < 32 || used * 4 >= cpus) continue;
    std::string at = config.place(s, "preprocessing_num_workers"), path = base::shell_quote(config.file.file->path);
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: {} of {} cores prepare the data", at, used, cpus),
          fmt::format("{}：{} 个核中只用 {} 个预处理数据", at, cpus, used)},
         given ? fmt::format("sed -i 's/^preprocessing_num_workers:.*/preprocessing_num_workers: {}/' {}", cpus / 2, path)
               : fmt::format("echo 'preprocessing_num_workers: {}' >> {}", cpus / 2, path));
  }
}

bool is_true(const base::Json& object, std::string_view path) {
  const base::Json* value = value_at(object, path);
  return value && *value == true;
}

void zero3_merge(const Situation& s, Findings& findings) {
  auto say = [&](const UserConfig& config, const std::string& key) {
    std::string at = config.place(s, key), name = key.substr(key.find_last_of('.') + 1);
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: stage 3 with {}: true", at, name), fmt::format("{}：stage 3 且 {}: true", at, name)});
  };
  for (const UserConfig& config : user_configs(s, "deepspeed"))
    for (const char* key :
         {"zero_optimization.stage3_gather_16bit_weights_on_model_save", "zero_optimization.gather_16bit_weights_on_model_save",
          "zero_optimization.stage3_gather_fp16_weights_on_model_save"})
      if (int_at(config.value, "zero_optimization.stage") == 3 && is_true(config.value, key)) say(config, key);
  for (const UserConfig& config : user_configs(s, "accelerate"))
    if (int_at(config.value, "deepspeed_config.zero_stage") == 3 && is_true(config.value, "deepspeed_config.zero3_save_16bit_model"))
      say(config, "deepspeed_config.zero3_save_16bit_model");
}

void offload_memory(const Situation& s, Findings& findings) {
  auto check = [&](const UserConfig& config, const std::string& key) {
    const base::Json* device = value_at(config.value, key);
    if (!device || *device != "cpu") return;
    for (size_t h : config.file.hosts) {
      int64_t gpus = 0;
      for (const host::Gpu& gpu : s.hosts[h].facts.gpus.devices) gpus += gpu.memory_bytes;
      const int64_t memory = s.hosts[h].facts.machine.memory_available_bytes;
      if (gpus <= 0 || memory <= 0 || memory >= gpus) continue;
      std::string free = base::format_bytes(static_cast<uint64_t>(memory)), cards = base::format_bytes(static_cast<uint64_t>(gpus));
      findings.on(h, {fmt::format("{}: cpu; {} of memory available, the GPUs have {}", config.place(s, key), free, cards),
                      fmt::format("{}：cpu；可用内存 {}，GPU 显存共 {}", config.place(s, key), free, cards)});
    }
  };
  for (const UserConfig& config : user_configs(s, "deepspeed"))
    for (const char* key : {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"}) check(config, key);
  for (const UserConfig& config : user_configs(s, "accelerate"))
    for (const char* key : {"deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device"}) check(config, key);
}

constexpr Row kDataConfigRows[] = {
    {"DATA-BATCH",
     Severity::kNote,
     Group::kData,
     {"the batch of all ranks together", "所有 rank 合计的批大小"},
     {"How many samples does an optimizer step see?", "每次参数更新用了多少个样本？"},
     {"Batch sizes of DataLoader, Trainer and LLaMA-Factory are per rank. With more ranks the same file trains with a larger batch, fewer "
      "steps, and "
      "a learning rate that may no longer fit.",
      "DataLoader、Trainer、LLaMA-Factory 的批大小都是每个 rank 的。rank 变多时，同一份配置的总批量变大、步数变少，学习率可能就不再合适。"},
     {"To keep the batch, divide the accumulation by as much as the ranks grew; else scale the learning rate.\n$ phalanx plan -H <hosts> "
      "-- python <script>",
      "想保持总批量不变，就按 rank 增加的倍数减小累积步数；否则相应调整学习率。\n$ phalanx plan -H <hosts> -- python <script>"},
     "transformers/training_args.py",
     batch},
    {"DATA-PREPROCESS-WORKERS",
     Severity::kNote,
     Group::kData,
     {"few cores prepare the data", "预处理只用了少数核"},
     {"Does preprocessing_num_workers use the cores there are?", "preprocessing_num_workers 是否用上了现有的核？"},
     {"Tokenizing takes a large part of a short run, on rank 0 while all other ranks wait; without the key it is one process, and 16 of "
      "256 cores is "
      "the value of the examples.",
      "分词会占去短训练的很大一部分时间，而且由 rank 0 执行，其余 rank 都在等；不写这个键就只有一个进程，示例里的 16 在 256 "
      "核机器上也太少。"},
     {"About half of the cores is a good start.\n$ sed -i 's/^preprocessing_num_workers:.*/preprocessing_num_workers: 128/' <config>",
      "一般取核数的一半。\n$ sed -i 's/^preprocessing_num_workers:.*/preprocessing_num_workers: 128/' <config>"},
     "LLaMA-Factory src/llamafactory/hparams/data_args.py",
     preprocess_workers},
    {"DATA-ZERO3-MERGE",
     Severity::kNote,
     Group::kData,
     {"every save gathers the whole model on rank 0", "每次保存都会把整个模型汇集到 rank 0"},
     {"Does ZeRO-3 gather the 16-bit weights when it saves?", "ZeRO-3 保存时是否汇集 16 位权重？"},
     {"All shards go to rank 0, which writes them to safetensors while the others wait. A large model on a slow disk takes longer than the "
      "time-out: "
      "\"Watchdog caught collective operation timeout … OpType=_ALLGATHER_BASE … Timeout(ms)=600000\" exactly at save_steps, with "
      "_zero3_consolidated_16bit_state_dict in the stack.",
      "所有分片都发到 rank 0，由它写成 safetensors，其余 rank 等待。模型大、磁盘慢就会超时：恰好在 save_steps 处报 \"Watchdog caught "
      "collective "
      "operation timeout … OpType=_ALLGATHER_BASE … Timeout(ms)=600000\"，调用栈里有 _zero3_consolidated_16bit_state_dict。"},
     {"If saves time out: set it false and merge afterwards, or raise ddp_timeout.\n$ python zero_to_fp32.py <checkpoint> <output>",
      "若保存时超时：设为 false，训练后再合并；或调大 ddp_timeout。\n$ python zero_to_fp32.py <checkpoint> <output>"},
     "huggingface/accelerate#2912; deepspeedai/DeepSpeed#7533; deepspeed/runtime/engine.py",
     zero3_merge},
    {"DATA-OFFLOAD-MEMORY",
     Severity::kNote,
     Group::kData,
     {"the host has less memory than its GPUs, and offload moves their load there", "内存比显存还小，却要把显存里的内容卸载到内存"},
     {"Has the host memory for what is offloaded?", "内存是否放得下卸载的内容？"},
     {"Adam's states and the 32-bit weights need 12 bytes a parameter of the host's memory, pinned: the OOM killer ends ranks with exit "
      "code -9 and no "
      "traceback.",
      "Adam 状态和 32 位权重每个参数占 12 字节锁页内存：不够时内核的 OOM killer 会直接杀掉 rank，退出码 -9，没有任何 traceback。"},
     {"Compute it first.\n$ phalanx fit <model>/config.json", "先算一下。\n$ phalanx fit <model>/config.json"},
     "deepspeed/runtime/zero/stage3.py: estimate_zero3_model_states_mem_needs",
     offload_memory},
};

}  // namespace

std::span<const Row> data_config_rows() { return kDataConfigRows; }

}  // namespace doctor
