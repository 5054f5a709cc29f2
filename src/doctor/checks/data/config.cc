// Hints from configurations: the global batch, preparation of data, where offload puts the states.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/config_rules.h"
#include "doctor/views/command_view.h"
#include "machine/command/launch_line.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kMillion = 1'000'000;

void say_batch(const Situation& s, Findings& findings, const std::vector<size_t>& hosts, const std::string& where, int64_t each,
               int64_t steps) {
  if (each < 1 || steps < 1 || each > kMillion || steps > kMillion) return;
  const int64_t all = each * steps * s.job.world;
  tell(findings, s, hosts,
       tr("{}: {} per rank × {} ranks × {} accumulated = {} samples per optimizer step", where, each, s.job.world, steps, all));
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
    for (const machine::Argument& a : machine::read_arguments(launch.line->arguments)) {
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
    tell(findings, s, config.file.hosts, tr("{}: {} of {} cores prepare the data", at, used, cpus),
         given ? fmt::format("sed -i 's/^preprocessing_num_workers:.*/preprocessing_num_workers: {}/' {}", cpus / 2, path)
               : fmt::format("echo 'preprocessing_num_workers: {}' >> {}", cpus / 2, path));
  }
}

void offload_memory(const Situation& s, Findings& findings) {
  auto check = [&](const UserConfig& config, const std::string& key) {
    const base::Json* device = value_at(config.value, key);
    if (!device || *device != "cpu") return;
    for (size_t h : config.file.hosts) {
      int64_t gpus = 0;
      for (const machine::Gpu& gpu : s.hosts[h].facts.gpus.devices) gpus += gpu.memory_bytes;
      const int64_t memory = s.hosts[h].facts.machine.memory_available_bytes;
      if (gpus <= 0 || memory <= 0 || memory >= gpus) continue;
      std::string free = base::format_bytes(static_cast<uint64_t>(memory)), cards = base::format_bytes(static_cast<uint64_t>(gpus));
      findings.on(h, tr("{}: cpu; {} of host memory available, the GPUs have {}", config.place(s, key), free, cards));
    }
  };
  for (const UserConfig& config : user_configs(s, "deepspeed"))
    for (const char* key : {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"}) check(config, key);
  for (const UserConfig& config : user_configs(s, "accelerate"))
    for (const char* key : {"deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device"}) check(config, key);
}

constexpr Row kDataConfigRows[] = {
    {"DATA-BATCH", Severity::kNote, batch},
    {"DATA-PREPROCESS-WORKERS", Severity::kNote, preprocess_workers},
    {"DATA-ZERO3-MERGE", Severity::kNote, check_config_rules},
    {"DATA-OFFLOAD-MEMORY", Severity::kNote, offload_memory},
};

}  // namespace

std::span<const Row> data_config_rows() { return kDataConfigRows; }

}  // namespace phalanx::doctor
