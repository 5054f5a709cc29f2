// Flags of what is only computed or measured: fit, bench.
#include "cli/flags/flag_rows.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr FlagRow kFlags[] = {
    {.flag = Flag::kParams,
     .name = "params",
     .kind = ValueKind::kText,
     .metavar = "N",
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"number of parameters, for example 7B or 350M, instead of a model's configuration"}},
    {.flag = Flag::kGpuMemory,
     .name = "gpu-memory",
     .kind = ValueKind::kBytes,
     .metavar = "SIZE",
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"memory of one GPU, for example 24GiB; no host is probed (--nnodes and --nproc-per-node give the number of GPUs)"}},
    {.flag = Flag::kSequence,
     .name = "sequence",
     .kind = ValueKind::kInt,
     .metavar = "TOKENS",
     .min = 1,
     .max = 16'777'216,
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"tokens per sequence (default: the model's maximum, at most 4096)"}},
    {.flag = Flag::kBatch,
     .name = "batch",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 1,
     .max = 1'048'576,
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"sequences per rank and optimizer step (default: 1)"}},
    {.flag = Flag::kAccumulate,
     .name = "accumulate",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 1,
     .max = 1'048'576,
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"number of micro-batches that --batch is split into (default: 1)"}},
    {.flag = Flag::kPrecision,
     .name = "precision",
     .kind = ValueKind::kChoice,
     .metavar = "bf16|fp16|fp32",
     .choices = "bf16|fp16|fp32",
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"precision of the computation; the 16-bit types keep fp32 master weights (default: bf16)"}},
    {.flag = Flag::kNoFlash,
     .name = "no-flash",
     .verbs = bit(Verb::kFit),
     .section = Section::kRanks,
     .help = Text{"count the memory of the attention scores, for models without flash or memory-efficient attention"}},
    {.flag = Flag::kSeconds,
     .name = "seconds",
     .kind = ValueKind::kInt,
     .metavar = "N",
     .min = 1,
     .max = 60,
     .verbs = bit(Verb::kBench),
     .section = Section::kRanks,
     .help = Text{"seconds that each pair of hosts sends at full speed (default: 1)"}},
};

}  // namespace

std::span<const FlagRow> measure_flags() { return kFlags; }

}  // namespace phalanx::cli
