// Memory per rank for data parallel and ZeRO, and for the host with offload. Pure arithmetic; every formula with its source.
//
// States, Ψ parameters, N ranks, Adam (ZeRO: Rajbhandari et al., arXiv 1910.02054, section 3 and figure 1; 16-bit training keeps 2
// bytes of parameter, 2 of gradient, K = 12 of fp32 copy, momentum and variance; fp32 training 4, 4 and 8):
//
//               16-bit                        fp32
//   DDP         (2 + 2 + K) Ψ                 16 Ψ
//   ZeRO-1      (2 + 2) Ψ + K Ψ / N           8 Ψ + 8 Ψ / N
//   ZeRO-2      2 Ψ + (2 + K) Ψ / N           4 Ψ + 12 Ψ / N
//   ZeRO-3      (2 + 2 + K) Ψ / N             16 Ψ / N            + the largest layer gathered (parameters and gradients)
//
// LoRA of rank r on all linear layers (Hu et al., arXiv 2106.09685): A = r × (inputs + outputs of every linear layer) parameters are
// trained, the Ψ of the model are frozen, in 16 bits without gradient, optimizer state or fp32 copy. PEFT keeps adapters in fp32
// (autocast_adapter_dtype), so with Adam 16 bytes for each: DDP 2Ψ + 16A, ZeRO-3 (2Ψ + 16A) / N and the largest layer gathered without
// gradients; fp32 4Ψ in place of 2Ψ. With adapters on all linear layers, the inputs of all of them are kept as in full training.
//
// Offload of the optimizer (DeepSpeed offload_optimizer: cpu) moves optimizer states and gradients to the host; of the
// parameters too (offload_param), stage 3 keeps only the gathered layer on the GPU.
//
// Activations, 16-bit, per layer, s tokens, b sequences, h hidden, a heads (Korthikanti et al., arXiv 2205.05198, equations 1–4
// without tensor parallelism):  kept whole s·b·h·(34 + 5·a·s/h); with an attention kernel that keeps no scores (flash) 34·s·b·h;
// checkpointed 2·s·b·h. For gated MLPs (Llama, Qwen) the tensors kept for backward are counted one by one: 12 h + 4 k + 8 f bytes
// a token (inputs of two norms, of q/k/v, of o, of gate/up; q, k, v; gate, up, silu(gate), their product), k the width of the
// keys, f of the MLP. Checkpointing adds one layer's whole activations during its recomputation. The loss keeps logits in 16 bits,
// in fp32 and their gradient in fp32: 10 bytes × vocabulary a token. fp32 training doubles all but the logits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fit/model.h"

namespace phalanx::fit {

enum class Stage { kDdp, kZero1, kZero2, kZero3 };
enum class Offload { kNone, kOptimizer, kAll };  // kAll (parameters too): stage 3 only
enum class Precision { k16Bit, kFp32 };

struct Training {
  int hosts = 1;
  int gpus_per_host = 1;
  Precision precision = Precision::k16Bit;
  int64_t sequence = 0;    // tokens; 0: the model's longest, at most 4096
  int64_t batch = 1;       // sequences per rank and optimizer step
  int64_t accumulate = 1;  // micro-batches it is cut into
  bool flash = true;       // attention keeps no scores
  int64_t lora_rank = 0;   // of adapters on all linear layers; 0: all parameters are trained. Needs the model's shape
  int world() const { return hosts * gpus_per_host; }
};

// Bytes on one rank, and on one host.
struct Memory {
  Stage stage = Stage::kDdp;
  Offload offload = Offload::kNone;
  bool checkpointing = false;
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t gathered = 0;     // stage 3: the largest layer, parameters and, where they are trained, gradients
  int64_t activations = 0;  // 0 when the model's shape is not known
  int64_t logits = 0;
  int64_t context = 0;  // CUDA context, libraries and NCCL's buffers
  int64_t host = 0;     // per host, with offload
  int64_t gpu() const { return parameters + gradients + optimizer + gathered + activations + logits + context; }
};

// What a process holds beside the model: CUDA context with kernels of PyTorch and cuBLAS, NCCL's buffers. Seen between 0.6 and
// 1.3 GiB on current cards; a round figure, told as such.
inline constexpr int64_t kContextBytes = int64_t{1} << 30;

// The tokens of one sequence: as asked for, else the model's longest up to 4096; 0 when the shape is not known.
int64_t sequence_of(const Model& model, const Training& training);

Memory memory(const Model& model, const Training& training, Stage stage, Offload offload, bool checkpointing);

// Parameters that are trained.
int64_t trained(const Model& model, const Training& training);

// All that can be chosen, cheapest first: no offload before offload, less communication before more (DDP, 1, 2, 3), without
// checkpointing before with it. With LoRA only DDP, ZeRO-3 and ZeRO-3 with full offload: the rest is little to share or to move.
std::vector<Memory> choices(const Model& model, const Training& training);
// The first of `choices` that fits; -1: none. gpu_bytes: of the smallest GPU; host_bytes: memory of a host, 0: unknown.
int cheapest(const std::vector<Memory>& choices, int64_t gpu_bytes, int64_t host_bytes);
// Of a GPU's memory, what a job can count on: the allocator's fragments and the driver keep some.
inline constexpr double kUsableFraction = 0.95;

// DeepSpeed's own estimators (deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, estimate_zero*_model_states_mem_needs), for
// comparison: bytes per GPU and per host.
struct Estimate {
  int64_t gpu = 0, host = 0;
};
Estimate deepspeed_zero2(int64_t parameters, int gpus_per_host, int hosts, bool offload_optimizer);
Estimate deepspeed_zero3(int64_t parameters, int64_t largest_layer, int gpus_per_host, int hosts, Offload offload, bool zero_init);

std::string_view name(Stage stage);  // "DDP", "ZeRO-1"

}  // namespace phalanx::fit
