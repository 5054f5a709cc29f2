// fit: model → parameters; hosts (or what was said of them) → GPUs; then arithmetic. Nothing is started.

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/launch.h"
#include "cli/make_job.h"
#include "cli/quiet_watcher.h"
#include "os/files.h"
#include "view/fit_view.h"
#include "view/speech.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMaxConfigBytes = 4 << 20;
constexpr int64_t kLeastGpuBytes = 256 << 20;

using base::usage;

// "meta-llama/Llama-2-7b-hf", as Hugging Face names models: one slash, no folder of that name here.
bool is_hub_name(const std::string& path) {
  const size_t slash = path.find('/');
  return slash != std::string::npos && slash > 0 && path[0] != '.' && slash + 1 < path.size() &&
         path.find('/', slash + 1) == std::string::npos && !path.ends_with(".json") && !os::exists(path.substr(0, slash));
}

// A folder stands for the config.json in it.
base::Result<fit::Model> read_model(const Invocation& invocation) {
  std::optional<std::string> count = invocation.value(Flag::kParams);
  if (count && !invocation.operands.empty())
    return usage("a model and --params cannot be combined: both give the number of parameters", "keep one of them");
  if (count) {
    if (invocation.has(Flag::kLora))
      return usage("--lora needs the shapes of the linear layers, which the number of parameters alone does not determine",
                   "phalanx fit model/config.json --lora RANK");
    for (Flag flag : {Flag::kSequence, Flag::kBatch})
      if (invocation.has(flag))
        return usage("--sequence and --batch size the activations, which the number of parameters alone does not determine",
                     "phalanx fit model/config.json   (or omit --sequence and --batch)");
    TRY_ASSIGN(int64_t parameters, fit::parse_parameter_count(*count));
    return fit::model_from_count(parameters);
  }
  if (invocation.operands.size() != 1) return usage("fit needs a model", "phalanx fit model/config.json   (or --params 7B)");
  std::string path = invocation.operands[0];
  if (os::is_folder(path)) path += "/config.json";
  base::Result<std::string> text = os::read_file(path, kMaxConfigBytes);
  if (!text.ok() && is_hub_name(path))
    return usage(fmt::format("{} is a name on a hub, not a file", path), "download its config.json, then phalanx fit <folder>/config.json");
  if (!text.ok()) return usage(fmt::format("{} cannot be read", path), "ls -l " + base::shell_quote(path)).because(text.error().message);
  base::Result<base::Json> json = base::parse_json(*text);
  if (!json.ok()) return base::Error(json.error()).within("reading " + path);
  base::Result<fit::Model> model = fit::model_from_config(*json);
  if (!model.ok()) return base::Error(model.error()).within("reading " + path);
  return model;
}

int64_t count(const Invocation& invocation, Flag flag, int64_t otherwise) {
  std::optional<std::string> value = invocation.value(flag);
  return value ? int_value(*value) : otherwise;
}

fit::Training read_training(const Invocation& invocation, const RunOptions& options) {
  fit::Training t;
  t.precision = invocation.value(Flag::kPrecision) == "fp32" ? fit::Precision::kFp32 : fit::Precision::k16Bit;
  t.sequence = count(invocation, Flag::kSequence, 0);
  t.batch = count(invocation, Flag::kBatch, 1);
  t.accumulate = count(invocation, Flag::kAccumulate, 1);
  t.lora_rank = count(invocation, Flag::kLora, 0);
  t.flash = !invocation.has(Flag::kNoFlash);
  t.hosts = options.nnodes.value_or(1);
  if (options.ranks_per_host && options.ranks_per_host->kind == RanksPerHost::Kind::kCount) t.gpus_per_host = options.ranks_per_host->count;
  return t;
}

// The GPUs the hosts really have: as many per host as the host with the fewest, as large as the smallest.
base::Status look_at_hosts(const Invocation&, RunOptions options, fit::Training& training, view::FitTarget& target) {
  bool counted = options.ranks_per_host && options.ranks_per_host->kind == RanksPerHost::Kind::kCount;
  TRY_ASSIGN(job::Job job, make_job(options, detect_terminal()));
  job.check_only = true;
  job.run_id = "fit";
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  QuietWatcher watcher(view::choose_language([](const char* name) { return os::environment_value(name); }));
  job::Runner runner(*loop, watcher);
  TRY_ASSIGN(job::Verdict verdict, run_on_hosts(runner, std::move(job), options));
  const doctor::Situation& situation = runner.state().survey.situation;
  int64_t fewest = INT64_MAX, most = 0;
  std::string without;  // a host that has no GPU
  for (const doctor::HostView& host : situation.hosts) {
    if (!host.probed) {
      for (const base::Error& refusal : verdict.refusals) return base::Error(refusal);
      return base::fail(base::ErrorKind::kUnreachable, fmt::format("{}: could not be probed", host.name)).because(host.error);
    }
    auto gpus = static_cast<int64_t>(host.facts.gpus.devices.size());
    fewest = std::min(fewest, gpus);
    most = std::max(most, gpus);
    if (gpus == 0) without = host.name;
    int64_t memory = host.facts.machine.memory_bytes;
    target.host_bytes = target.host_bytes == 0 ? memory : std::min(target.host_bytes, memory);
    for (const machine::Gpu& gpu : host.facts.gpus.devices) {
      if (target.gpu_bytes != 0 && gpu.memory_bytes >= target.gpu_bytes) continue;
      target.gpu_bytes = gpu.memory_bytes;
      target.gpu_name = gpu.name;
    }
  }
  if (most > 0 && !without.empty())
    return base::fail(base::ErrorKind::kUnfit, fmt::format("{} has no GPU, but other hosts have", without))
        .with_hint("phalanx fit … --exclude " + without);
  training.hosts = static_cast<int>(situation.hosts.size());
  if (!counted) training.gpus_per_host = static_cast<int>(std::max<int64_t>(1, fewest));
  return base::ok();
}

}  // namespace

base::Result<int> fit_verb(const Invocation& invocation) {
  TRY_ASSIGN(fit::Model model, read_model(invocation));
  TRY_ASSIGN(RunOptions options, run_options(invocation));
  fit::Training training = read_training(invocation, options);
  view::FitTarget target;
  bool hosts_named = !options.hosts.empty() || !options.hostfile.empty();
  if (std::optional<std::string> size = invocation.value(Flag::kGpuMemory)) {
    TRY_ASSIGN(target.gpu_bytes, base::parse_bytes(*size));
    if (target.gpu_bytes < kLeastGpuBytes)
      return usage(
          fmt::format("--gpu-memory {} is {}: no GPU is that small", *size, base::format_bytes(static_cast<uint64_t>(target.gpu_bytes))),
          "--gpu-memory " + *size + "GiB");
    if (hosts_named) return usage("--gpu-memory and hosts cannot be combined: fit probes the GPUs of the hosts", "keep one of them");
  } else {
    TRY(look_at_hosts(invocation, options, training, target));
  }
  // From here on everything is known; the rest is arithmetic.

  base::Language language = view::choose_language([](const char* name) { return os::environment_value(name); });
  std::string text =
      options.json ? base::to_text(view::fit_json(model, training, target), 2) + "\n" : view::fit_text(model, training, target, language);
  std::fputs(text.c_str(), stdout);
  return target.gpu_bytes > 0 && fit::cheapest(fit::choices(model, training), target.gpu_bytes, target.host_bytes) < 0
             ? base::exit_code(base::ErrorKind::kUnfit)
             : 0;
}

}  // namespace phalanx::cli
