#include "fit/memory.h"

#include <algorithm>

namespace phalanx::fit {
namespace {

constexpr double kBufferFactor = 1.5;  // additional_buffer_factor of DeepSpeed's estimators
constexpr int64_t kLongestAssumed = 4096;

int64_t share(int64_t bytes, int64_t ranks) { return (bytes + ranks - 1) / ranks; }

int64_t scaled(int64_t parameters, double bytes_each) { return static_cast<int64_t>(static_cast<double>(parameters) * bytes_each); }

// Bytes one token leaves behind in one layer.
int64_t layer_bytes_per_token(const Model& m, const Training& training, int64_t sequence) {
  int64_t bytes = 0;
  if (m.name == "gpt2") {
    bytes = 34 * m.hidden;
  } else {
    int64_t q = m.heads * m.head_size, kv = m.key_value_heads * m.head_size;
    bytes = 8 * m.hidden + 4 * q + 4 * kv + 8 * m.intermediate;
  }
  if (!training.flash) bytes += 5 * m.heads * sequence;
  return bytes;
}

void add_activations(Memory& out, const Model& m, const Training& training) {
  if (!m.shape_known()) return;
  int64_t sequence = sequence_of(m, training);
  int64_t micro = share(training.batch, training.accumulate);
  int64_t tokens = sequence * micro;
  int64_t whole = tokens * layer_bytes_per_token(m, training, sequence);
  out.activations = out.checkpointing ? m.layers * 2 * tokens * m.hidden + whole : m.layers * whole;
  if (training.precision == Precision::kFp32) out.activations *= 2;
  out.logits = tokens * m.vocabulary * 10;
}

int64_t host_bytes(const Model& m, const Training& s, Stage stage, Offload offload, int64_t states) {
  if (offload == Offload::kNone) return 0;
  if (s.lora_rank > 0) return scaled(share(states, s.hosts), kBufferFactor);
  if (stage == Stage::kZero3) return deepspeed_zero3(m.parameters, m.largest_layer, s.gpus_per_host, s.hosts, offload, true).host;
  return deepspeed_zero2(m.parameters, s.gpus_per_host, s.hosts, true).host;
}

// Bytes before they are shared among ranks.
struct States {
  int64_t parameters, gradients, optimizer, gathered;
  int64_t sum() const { return parameters + gradients + optimizer; }
};

States states_of(const Model& m, const Training& training) {
  const bool half = training.precision == Precision::k16Bit;
  const int64_t each = half ? 2 : 4, n = trained(m, training);
  if (training.lora_rank > 0) return {each * m.parameters + 4 * n, 4 * n, 8 * n, each * m.largest_layer};
  return {each * n, each * n, (half ? 12 : 8) * n, 2 * each * m.largest_layer};
}

}  // namespace

int64_t trained(const Model& model, const Training& training) {
  return training.lora_rank > 0 ? training.lora_rank * model.linear_widths : model.parameters;
}

int64_t sequence_of(const Model& model, const Training& training) {
  if (!model.shape_known()) return 0;
  return training.sequence > 0 ? training.sequence : std::min(model.positions, kLongestAssumed);
}

Memory memory(const Model& m, const Training& training, Stage stage, Offload offload, bool checkpointing) {
  Memory out;
  out.stage = stage;
  out.offload = offload;
  out.checkpointing = checkpointing;
  const States states = states_of(m, training);
  const int64_t ranks = training.world();
  out.parameters = states.parameters;
  out.gradients = states.gradients;
  out.optimizer = states.optimizer;
  if (stage >= Stage::kZero1) out.optimizer = share(out.optimizer, ranks);
  if (stage >= Stage::kZero2) out.gradients = share(out.gradients, ranks);
  if (stage >= Stage::kZero3) {
    out.parameters = share(out.parameters, ranks);
    out.gathered = states.gathered;
  }
  if (offload != Offload::kNone) out.optimizer = out.gradients = 0;
  if (offload == Offload::kAll) out.parameters = 0;
  out.host = host_bytes(m, training, stage, offload, states.sum());
  out.context = kContextBytes;
  add_activations(out, m, training);
  return out;
}

std::vector<Memory> choices(const Model& model, const Training& training) {
  std::vector<Memory> all;
  std::vector<bool> checkpointing = model.shape_known() ? std::vector<bool>{false, true} : std::vector<bool>{false};
  const bool lora = training.lora_rank > 0;
  std::vector<Stage> stages = {Stage::kDdp, Stage::kZero1, Stage::kZero2, Stage::kZero3};
  if (lora) stages = {Stage::kDdp, Stage::kZero3};
  if (training.world() == 1) stages = {Stage::kDdp};
  for (Stage stage : stages)
    for (bool c : checkpointing) all.push_back(memory(model, training, stage, Offload::kNone, c));
  for (auto [stage, offload] :
       {std::pair{Stage::kZero2, Offload::kOptimizer}, {Stage::kZero3, Offload::kOptimizer}, {Stage::kZero3, Offload::kAll}})
    for (bool c : checkpointing)
      if (!lora || offload == Offload::kAll) all.push_back(memory(model, training, stage, offload, c));
  return all;
}

int cheapest(const std::vector<Memory>& all, int64_t gpu_bytes, int64_t host_bytes) {
  auto usable = static_cast<int64_t>(static_cast<double>(gpu_bytes) * kUsableFraction);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].gpu() <= usable && (host_bytes == 0 || all[i].host <= host_bytes)) return static_cast<int>(i);
  return -1;
}

Estimate deepspeed_zero2(int64_t p, int gpus_per_host, int hosts, bool offload_optimizer) {
  int64_t total = int64_t{gpus_per_host} * hosts;
  if (offload_optimizer) return {2 * p, scaled(p, static_cast<double>(std::max<int64_t>(4 * total, 16)) * kBufferFactor)};
  return {4 * p + 16 * p / total, scaled(p, 4.0 * gpus_per_host * kBufferFactor)};
}

Estimate deepspeed_zero3(int64_t p, int64_t largest_layer, int gpus_per_host, int hosts, Offload offload, bool zero_init) {
  int64_t total = int64_t{gpus_per_host} * hosts, gathered = 4 * largest_layer;
  double part = 1.0 / hosts, start = 4.0 * gpus_per_host;
  switch (offload) {
    case Offload::kAll: return {gathered, scaled(p, (zero_init ? 18 * part : std::max(start, 18 * part)) * kBufferFactor)};
    case Offload::kOptimizer:
      return {gathered + 2 * p / total, scaled(p, (zero_init ? 16 * part : std::max(start, 16 * part)) * kBufferFactor)};
    case Offload::kNone: break;
  }
  return {gathered + 18 * p / total, scaled(zero_init ? largest_layer : p, start * kBufferFactor)};
}

std::string_view name(Stage stage) {
  constexpr std::string_view kNames[] = {"DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
  return kNames[static_cast<size_t>(stage)];
}

}  // namespace phalanx::fit
