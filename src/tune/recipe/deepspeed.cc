#include "tune/recipe/deepspeed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/unicode.h"
#include "tune/recipe/recipe.h"

namespace phalanx::tune {
namespace {

using base::Json;
using enum Handling;

struct Key {
  std::string_view path;  // ending with ".*": everything below
  Handling handling = kHonoured;
  std::string_view note;
};

constexpr std::string_view kStays = "parameters are not moved to the host's memory", kOverlaps = "communication always overlaps",
                           kFp16 = "fp16 is not supported", kPrints = "phalanx-train prints its own lines",
                           kTwo = "two parts of the model are whole at a time", kYaml = "set it in the YAML",
                           kOther = "this method is not supported", kOneWay = "there is one way, which does this",
                           kMonitor = "no external logger is supported";

constexpr std::array kKeys{
    Key{"train_batch_size", kHonoured, "sequences of a step, which the recipe must come to"},
    Key{"train_micro_batch_size_per_gpu", kHonoured, "must be per_device_train_batch_size"},
    Key{"gradient_accumulation_steps", kHonoured, "must be the recipe's"},
    Key{"gradient_clipping", kHonoured, "must be max_grad_norm"},
    Key{"bf16.enabled", kHonoured, "must be the recipe's"},
    Key{"bf16.*", kMeaningless, kOneWay},
    Key{"fp16.enabled", kRefused, kFp16},
    Key{"fp16.*", kMeaningless, kFp16},
    Key{"zero_optimization.stage", kHonoured, "what ranks share out: 1 the optimizer's states, 2 gradients too, 3 parameters too"},
    Key{"zero_optimization.stage3_param_persistence_threshold", kHonoured, "smaller parameters stay whole; auto: 10 widths of the model"},
    Key{"zero_optimization.stage3_prefetch_bucket_size", kHonoured, "0: no parameters are gathered ahead; else those of the next part"},
    Key{"zero_optimization.reduce_bucket_size", kHonoured, "elements that are reduced together, at most; never more than 25 MB"},
    Key{"zero_optimization.offload_optimizer.device", kHonoured, "cpu: ranks on GPUs keep the optimizer's states in their host's memory"},
    Key{"zero_optimization.offload_param.device", kMeaningless, kStays},
    Key{"zero_optimization.offload_optimizer.nvme_path", kRefused, "nothing is moved to disks"},
    Key{"zero_optimization.offload_param.nvme_path", kRefused, "nothing is moved to disks"},
    Key{"zero_optimization.offload_optimizer.*", kMeaningless, kOneWay},
    Key{"zero_optimization.offload_param.*", kMeaningless, kStays},
    Key{"zero_optimization.cpu_offload", kHonoured, "as offload_optimizer"},
    Key{"zero_optimization.overlap_comm", kMeaningless, kOverlaps},
    Key{"zero_optimization.contiguous_gradients", kMeaningless, kOneWay},
    Key{"zero_optimization.allgather_partitions", kMeaningless, kOneWay},
    Key{"zero_optimization.allgather_bucket_size", kMeaningless, "parameters are gathered in the buckets of the gradients"},
    Key{"zero_optimization.reduce_scatter", kMeaningless, kOneWay},
    Key{"zero_optimization.round_robin_gradients", kMeaningless, "every rank has an equal share of every bucket"},
    Key{"zero_optimization.sub_group_size", kMeaningless, "the optimizer works on a bucket at a time"},
    Key{"zero_optimization.ignore_unused_parameters", kMeaningless, "unused parameters have zero gradients"},
    Key{"zero_optimization.elastic_checkpoint", kMeaningless, "any number of ranks continues a checkpoint"},
    Key{"zero_optimization.load_from_fp32_weights", kMeaningless, "checkpoints hold fp32"},
    Key{"zero_optimization.legacy_stage1", kMeaningless, kOneWay},
    Key{"zero_optimization.memory_efficient_linear", kMeaningless, kOneWay},
    Key{"zero_optimization.stage3_max_live_parameters", kMeaningless, kTwo},
    Key{"zero_optimization.stage3_max_reuse_distance", kMeaningless, kTwo},
    Key{"zero_optimization.stage3_module_granularity_threshold", kMeaningless, kTwo},
    Key{"zero_optimization.stage3_gather_16bit_weights_on_model_save", kMeaningless, "the model is always written whole"},
    Key{"zero_optimization.stage3_gather_fp16_weights_on_model_save", kMeaningless, "the model is always written whole"},
    Key{"zero_optimization.zero_hpz_partition_size", kRefused, kOther},
    Key{"zero_optimization.zero_quantized_weights", kRefused, kOther},
    Key{"zero_optimization.zero_quantized_nontrainable_weights", kRefused, kOther},
    Key{"zero_optimization.zero_quantized_gradients", kRefused, kOther},
    Key{"zero_optimization.mics_shard_size", kRefused, kOther},
    Key{"zero_allow_untested_optimizer", kMeaningless, "AdamW is the only optimizer"},
    Key{"zero_force_ds_cpu_optimizer", kMeaningless, "AdamW is the only optimizer"},
    Key{"prescale_gradients", kMeaningless, "gradients are sums"},
    Key{"gradient_predivide_factor", kMeaningless, "gradients are sums"},
    Key{"communication_data_type", kRefused, "gradients are summed in fp32"},
    Key{"optimizer.*", kRefused, kYaml},
    Key{"scheduler.*", kRefused, kYaml},
    Key{"amp.*", kRefused, kOther},
    Key{"fp8.enabled", kRefused, "use bf16: true"},
    Key{"fp8.*", kMeaningless, "fp8 is not supported"},
    Key{"tensor_parallel.autotp_size", kRefused, "a model is not cut across its matrices"},
    Key{"tensor_parallel.*", kMeaningless, "a model is not cut across its matrices"},
    Key{"activation_checkpointing.*", kMeaningless, "activations are kept; the result is the same"},
    Key{"steps_per_print", kMeaningless, kPrints},
    Key{"wall_clock_breakdown", kMeaningless, kPrints},
    Key{"dump_state", kMeaningless, kPrints},
    Key{"memory_breakdown", kMeaningless, kPrints},
    Key{"comms_config.*", kMeaningless, kPrints},
    Key{"comms_logger.*", kMeaningless, kPrints},
    Key{"flops_profiler.*", kMeaningless, kPrints},
    Key{"monitor_config.*", kMeaningless, kMonitor},
    Key{"csv_monitor.*", kMeaningless, kMonitor},
    Key{"tensorboard.*", kMeaningless, kMonitor},
    Key{"wandb.*", kMeaningless, kMonitor},
    Key{"_comment", kMeaningless, "it is for people"},
};

constexpr size_t kDeepest = 8;

const Key* find_key(const std::string& path) {
  for (const Key& one : kKeys) {
    const bool group = one.path.ends_with(".*");
    const std::string_view prefix = one.path.substr(0, one.path.size() - (group ? 1 : 0));
    if (group ? path.starts_with(prefix) : path == prefix) return &one;
  }
  return nullptr;
}

bool has_below(const std::string& path) {
  return std::any_of(kKeys.begin(), kKeys.end(), [&](const Key& one) { return one.path.starts_with(path + "."); });
}

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : base::to_text(value); }

bool is_auto(const Json& value) { return value.is_string() && value.get<std::string>() == "auto"; }

bool asks_for_nothing(const Json& value) {
  return value.is_null() || is_auto(value) || value == false || value == 0 || value == 1 || value == "none" || value == "fp32";
}

class Reader {
 public:
  Reader(const Recipe& recipe, std::vector<GivenKey>* given) : recipe_(recipe), given_(given) {}

  void read(const std::string& path, const Json& value, size_t depth) {
    const Key* key = find_key(path);
    if (!key && value.is_object() && depth < kDeepest) {
      for (const auto& [name, below] : value.items()) read(path.empty() ? name : path + "." + name, below, depth + 1);
      return;
    }
    if (!key && has_below(path)) return add(path, fmt::format("{} is not a mapping of keys", shown(value)));
    if (!key) return add(path, unknown(path));
    const bool leaf = !value.is_object();
    if (!leaf && !key->path.ends_with(".*")) return add(path, "is a mapping");
    if (!leaf && depth < kDeepest) {
      for (const auto& [name, below] : value.items()) read(path + "." + name, below, depth + 1);
      return;
    }
    const bool asks = key->handling == kRefused && !asks_for_nothing(value);
    if (asks) return add(path, fmt::format("{}: {}", shown(value), key->note));
    given_->push_back({"deepspeed." + path, shown(value), 0, key->handling == kRefused ? kMeaningless : key->handling,
                       key->handling == kRefused ? std::string_view("it asks for nothing") : key->note});
    take(path, value);
  }

  DeepSpeed out;
  std::vector<std::string> problems;

 private:
  void add(const std::string& path, const std::string& what) { problems.push_back(fmt::format("deepspeed: {}: {}", path, what)); }

  static std::string unknown(const std::string& path) {
    std::vector<std::string> names;
    for (const Key& one : kKeys) names.emplace_back(one.path);
    const auto near = base::closest(path, names);
    return near ? fmt::format("unknown key; the nearest is {}", *near) : "unknown key";
  }

  void take(const std::string& path, const Json& value) {
    const std::string name = path.substr(path.rfind('.') + 1);
    const bool offloads = path.ends_with("offload_optimizer.device") || path.ends_with("offload_param.device");
    if (offloads && value != "cpu" && value != "none") return add(path, fmt::format("{}: nothing is moved to disks", shown(value)));
    if (is_auto(value)) {
      if (name == "stage") add(path, "\"auto\" is not a number from 0 to 3");
      return;
    }
    if (path == "zero_optimization.offload_optimizer.device") {
      out.offload = value == "cpu";
    } else if (path == "zero_optimization.cpu_offload") {
      out.offload = value == true;
    } else if (path == "zero_optimization.stage") {
      if (auto stage = whole(path, value, 3)) out.stage = static_cast<int>(*stage);
    } else if (name == "stage3_param_persistence_threshold") {
      out.persistent_elements = whole(path, value, kMost);
    } else if (name == "stage3_prefetch_bucket_size") {
      if (auto elements = whole(path, value, kMost)) out.prefetch = *elements > 0;
    } else if (name == "reduce_bucket_size") {
      out.bucket_elements = whole(path, value, kMost);
      if (out.bucket_elements == 0) add(path, "0 is not positive");
    } else if (path == "train_batch_size") {
      out.batch_of_all_ranks = whole(path, value, kMost);
    } else if (path == "train_micro_batch_size_per_gpu") {
      same(path, value, "per_device_train_batch_size", recipe_.per_device_train_batch_size);
    } else if (path == "gradient_accumulation_steps") {
      same(path, value, "gradient_accumulation_steps", recipe_.gradient_accumulation_steps);
    } else if (path == "gradient_clipping") {
      same(path, value, "max_grad_norm", recipe_.max_grad_norm);
    } else if (path == "bf16.enabled" && value != recipe_.bf16) {
      add(path, fmt::format("{}, and the recipe has bf16: {}; make them equal, or write \"auto\"", shown(value), recipe_.bf16));
    }
  }

  template <typename T>
  void same(const std::string& path, const Json& value, const char* key, T wanted) {
    if (value.is_number() && value.get<double>() == static_cast<double>(wanted)) return;
    add(path, fmt::format("{}, and the recipe has {}: {}; make them equal, or write \"auto\"", shown(value), key, wanted));
  }

  std::optional<int64_t> whole(const std::string& path, const Json& value, double most) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (number >= 0 && number <= most && number == std::floor(number)) return static_cast<int64_t>(number);
    add(path, fmt::format("{} is not a whole number from 0 to {}", base::quote(shown(value)), most));
    return std::nullopt;
  }

  static constexpr double kMost = 1e15;
  const Recipe& recipe_;
  std::vector<GivenKey>* given_;
};

}  // namespace

base::Result<DeepSpeed> read_deepspeed(const Json& config, const Recipe& recipe, std::vector<GivenKey>* given) {
  if (!config.is_object()) return base::fail(base::ErrorKind::kConfig, "deepspeed: it is not a mapping of keys");
  Reader reader(recipe, given);
  reader.read("", config, 0);
  if (reader.problems.empty()) return reader.out;
  const size_t count = reader.problems.size();
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} problem{} in DeepSpeed's configuration", count, count == 1 ? "" : "s"))
      .because(base::join(reader.problems, "\n"));
}

}  // namespace phalanx::tune
