// Held against published figures: the ZeRO paper's, DeepSpeed's documentation's.
#include "fit/memory.h"

#include <gtest/gtest.h>

#include <cmath>

namespace phalanx::fit {
namespace {

constexpr double kGB = 1e9;
constexpr double kGiB = 1024.0 * 1024 * 1024;

Training ranks(int n) {
  Training s;
  s.gpus_per_host = n;
  return s;
}

double states(const Memory& m) { return static_cast<double>(m.parameters + m.gradients + m.optimizer); }

// Figure 1 and table 1 of arXiv 1910.02054: Ψ = 7.5 B, K = 12, N ranks, in GB.
TEST(Memory, AgreesWithTheZeroPaper) {
  struct Figure {
    int ranks;
    double zero1, zero2, zero3;
  };
  Model m = model_from_count(7'500'000'000);
  for (const Figure& f :
       {Figure{4, 52.5, 41.3, 30}, {16, 35.6, 21.6, 7.5}, {64, 31.4, 16.6, 1.88}, {256, 30.4, 15.4, 0.47}, {1024, 30.1, 15.1, 0.12}}) {
    Training s = ranks(f.ranks);
    EXPECT_NEAR(states(memory(m, s, Stage::kDdp, Offload::kNone, false)) / kGB, 120, 1e-6);
    EXPECT_NEAR(states(memory(m, s, Stage::kZero1, Offload::kNone, false)) / kGB, f.zero1, 0.06) << f.ranks;
    EXPECT_NEAR(states(memory(m, s, Stage::kZero2, Offload::kNone, false)) / kGB, f.zero2, 0.06) << f.ranks;
    EXPECT_NEAR(states(memory(m, s, Stage::kZero3, Offload::kNone, false)) / kGB, f.zero3, 0.006) << f.ranks;
  }
}

// The worked examples of DeepSpeed's "Memory Requirements" page: t5-3b, 2851e6 parameters, 32e6 in the largest layer, 8 GPUs.
TEST(Memory, AgreesWithDeepSpeedsEstimator) {
  auto gib = [](int64_t bytes) { return std::round(static_cast<double>(bytes) / kGiB * 100) / 100; };
  Estimate e = deepspeed_zero2(2'851'000'000, 8, 1, true);
  EXPECT_DOUBLE_EQ(gib(e.host), 127.45);
  EXPECT_DOUBLE_EQ(gib(e.gpu), 5.31);
  e = deepspeed_zero2(2'851'000'000, 8, 1, false);
  EXPECT_DOUBLE_EQ(gib(e.host), 127.45);
  EXPECT_DOUBLE_EQ(gib(e.gpu), 15.93);
  struct Line {
    double host, gpu;
    Offload offload;
    bool zero_init;
  };
  for (const Line& l : {Line{71.69, 0.12, Offload::kAll, true},
                        {127.45, 0.12, Offload::kAll, false},
                        {63.72, 0.78, Offload::kOptimizer, true},
                        {127.45, 0.78, Offload::kOptimizer, false},
                        {1.43, 6.09, Offload::kNone, true},
                        {127.45, 6.09, Offload::kNone, false}}) {
    e = deepspeed_zero3(2'851'000'000, 32'000'000, 8, 1, l.offload, l.zero_init);
    EXPECT_NEAR(gib(e.host), l.host, 0.005);
    EXPECT_NEAR(gib(e.gpu), l.gpu, 0.005);
  }
}

// The same page, t5-large on 4 GPUs: 3291, 125 and 477 MB.
TEST(Memory, AgreesWithDeepSpeedsWorkedExample) {
  int64_t p = 737'670'000, l = 32'900'000;
  EXPECT_EQ(deepspeed_zero3(p, l, 4, 1, Offload::kNone, true).gpu >> 20, 3291);
  EXPECT_EQ(deepspeed_zero3(p, l, 4, 1, Offload::kAll, true).gpu >> 20, 125);
  EXPECT_NEAR(static_cast<double>(deepspeed_zero3(p, l, 4, 1, Offload::kOptimizer, true).gpu >> 20), 477, 1);
}

TEST(Memory, OneBytePerParameterOfEveryPart) {
  Training s = ranks(2);
  s.precision = Precision::kFp32;
  Model m = model_from_count(1'000);
  EXPECT_EQ(states(memory(m, s, Stage::kDdp, Offload::kNone, false)), 16'000);
  EXPECT_EQ(states(memory(m, s, Stage::kZero1, Offload::kNone, false)), 8'000 + 4'000);
  EXPECT_EQ(states(memory(m, s, Stage::kZero2, Offload::kNone, false)), 4'000 + 6'000);
  EXPECT_EQ(states(memory(m, s, Stage::kZero3, Offload::kNone, false)), 8'000);
}

Model gpt3_22b() {  // arXiv 2205.05198, table 3: 22B, a=64 h=6144 L=48 s=2048
  Model m;
  m.name = "gpt2";
  m.layers = 48;
  m.hidden = 6144;
  m.heads = 64;
  m.intermediate = 4 * 6144;
  m.vocabulary = 51200;
  m.positions = 2048;
  m.parameters = 22'000'000'000;
  return m;
}

// Equation 1 of arXiv 2205.05198: s·b·h·(34 + 5·a·s/h) per layer; flash leaves 34·s·b·h; checkpointing 2·s·b·h and one layer whole.
TEST(Memory, ActivationsFollowKorthikanti) {
  Training s = ranks(8);
  s.sequence = 2048;
  s.batch = 4;
  s.flash = false;
  Model m = gpt3_22b();
  double token_layer = 34.0 * 6144 + 5.0 * 64 * 2048;
  EXPECT_NEAR(static_cast<double>(memory(m, s, Stage::kDdp, Offload::kNone, false).activations), 2048.0 * 4 * 48 * token_layer, 1);
  s.flash = true;
  EXPECT_EQ(memory(m, s, Stage::kDdp, Offload::kNone, false).activations, int64_t{2048} * 4 * 48 * 34 * 6144);
  EXPECT_EQ(memory(m, s, Stage::kDdp, Offload::kNone, true).activations, int64_t{2048} * 4 * 6144 * (2 * 48 + 34));
  s.accumulate = 4;  // four micro-batches of one sequence
  EXPECT_EQ(memory(m, s, Stage::kDdp, Offload::kNone, false).activations, int64_t{2048} * 48 * 34 * 6144);
}

// PEFT's print_trainable_parameters() for rank 8 on all linear layers: Llama 2 7B 19,988,480, Llama 3 8B 20,971,520.
TEST(Memory, LoraTrainsWhatPeftCounts) {
  auto config = [](int64_t mlp, int64_t kv, int64_t vocabulary) {
    return *model_from_config({{"model_type", "llama"},
                               {"hidden_size", 4096},
                               {"intermediate_size", mlp},
                               {"num_attention_heads", 32},
                               {"num_key_value_heads", kv},
                               {"num_hidden_layers", 32},
                               {"vocab_size", vocabulary}});
  };
  Training s = ranks(8);
  s.lora_rank = 8;
  EXPECT_EQ(trained(config(11008, 32, 32000), s), 19'988'480);
  EXPECT_EQ(trained(config(14336, 8, 128256), s), 20'971'520);
  Model gpt2 = *model_from_config({{"model_type", "gpt2"}});
  EXPECT_EQ(trained(gpt2, s), 8 * 12 * (768 + 3 * 768 + 2 * 768 + 2 * (768 + 4 * 768)));
}

TEST(Memory, FrozenWeightsHaveNoStates) {
  Model m = gpt3_22b();
  m.linear_widths = 1'000'000;
  m.largest_layer = 500'000'000;
  Training s = ranks(4);
  s.lora_rank = 16;
  const int64_t frozen = 2 * m.parameters, adapters = 16 * 16'000'000;
  EXPECT_EQ(states(memory(m, s, Stage::kDdp, Offload::kNone, false)), frozen + adapters);
  const Memory sharded = memory(m, s, Stage::kZero3, Offload::kNone, false);
  EXPECT_EQ(states(sharded), (frozen + adapters) / 4);
  EXPECT_EQ(sharded.gathered, 2 * m.largest_layer) << "no gradients of what is frozen";
  EXPECT_EQ(memory(m, s, Stage::kZero3, Offload::kAll, false).host, (frozen + adapters) * 3 / 2);
  for (const Memory& choice : choices(m, s)) EXPECT_NE(choice.offload, Offload::kOptimizer);
  s.precision = Precision::kFp32;
  EXPECT_EQ(states(memory(m, s, Stage::kDdp, Offload::kNone, false)), 2 * frozen + adapters);
}

TEST(Memory, TheCheapestStageThatFitsIsChosen) {
  Model m = model_from_count(7'000'000'000);
  Training s = ranks(8);
  auto chosen = [&](int64_t gpu, int64_t host) {
    std::vector<Memory> all = choices(m, s);
    int i = cheapest(all, gpu, host);
    return i < 0 ? std::string("none")
                 : std::string(name(all[static_cast<size_t>(i)].stage)) +
                       (all[static_cast<size_t>(i)].offload == Offload::kNone ? "" : "+offload");
  };
  EXPECT_EQ(chosen(int64_t{141} << 30, 0), "DDP");    // 112 GB of states
  EXPECT_EQ(chosen(int64_t{80} << 30, 0), "ZeRO-1");  // 28 + 10.5
  EXPECT_EQ(chosen(int64_t{32} << 30, 0), "ZeRO-2");  // 14 + 12.25
  EXPECT_EQ(chosen(int64_t{24} << 30, 0), "ZeRO-3");  // 14
  EXPECT_EQ(chosen(int64_t{12} << 30, int64_t{1} << 40), "ZeRO-3+offload");
  EXPECT_EQ(chosen(int64_t{12} << 30, int64_t{64} << 30), "none");  // the host cannot hold what is moved there
}

}  // namespace
}  // namespace phalanx::fit
