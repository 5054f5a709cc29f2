// Flags of what is only computed or measured: fit, bench.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr FlagRow kFlags[] = {
    {Flag::kParams, "params", Takes::text("N"), bit(Verb::kFit), Section::kRanks,
     Text{"number of parameters, for example 7B or 350M, instead of a model's configuration"}},
    {Flag::kGpuMemory, "gpu-memory", Takes::bytes(), bit(Verb::kFit), Section::kRanks,
     Text{"memory of one GPU, for example 24GiB; no host is probed (--nnodes and --nproc-per-node give the number of GPUs)"}},
    {Flag::kSequence, "sequence", Takes::number("TOKENS", 1, 16'777'216), bit(Verb::kFit), Section::kRanks,
     Text{"tokens per sequence (default: the model's maximum, at most 4096)"}},
    {Flag::kBatch, "batch", Takes::number("N", 1, 1'048'576), bit(Verb::kFit), Section::kRanks,
     Text{"sequences per rank and optimizer step (default: 1)"}},
    {Flag::kAccumulate, "accumulate", Takes::number("N", 1, 1'048'576), bit(Verb::kFit), Section::kRanks,
     Text{"number of micro-batches that --batch is split into (default: 1)"}},
    {Flag::kPrecision, "precision", Takes::choice("bf16|fp16|fp32"), bit(Verb::kFit), Section::kRanks,
     Text{"precision of the computation; the 16-bit types keep fp32 master weights (default: bf16)"}},
    {Flag::kNoFlash, "no-flash", bit(Verb::kFit), Section::kRanks,
     Text{"count the memory of the attention scores, for models without flash or memory-efficient attention"}},
    {Flag::kLora, "lora", Takes::number("RANK", 1, 65'536), bit(Verb::kFit), Section::kRanks,
     Text{"train adapters of this rank on all linear layers instead of all parameters; needs a model's configuration"}},
    {Flag::kSeconds, "seconds", Takes::number("N", 1, 60), bit(Verb::kBench), Section::kRanks,
     Text{"seconds that each pair of hosts sends at full speed (default: 1)"}},
};

}  // namespace

std::span<const FlagRow> measure_flags() { return kFlags; }

}  // namespace phalanx::cli
