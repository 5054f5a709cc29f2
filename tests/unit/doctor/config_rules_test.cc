// The words of findings that rules make, as they were when each check was a function.
#include "doctor/config_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/examine.h"
#include "user_files.h"

namespace phalanx::doctor::test {
namespace {

// Of one code, "english | chinese | fix" each.
std::vector<std::string> said(Situation s, std::string_view code) {
  std::vector<std::string> all;
  for (const Finding& f : examine(s).findings)
    if (f.row->code == code) all.push_back(f.evidence.english + " | " + f.evidence.chinese + " | " + f.fix);
  return all;
}
using Lines = std::vector<std::string>;

TEST(ConfigRules, MisspeltKeysAreNamedWithTheirSection) {
  Situation s = docker_host_network();
  give(s, "a.yaml", "accelerate", "num_machine: 2\ndeepspeed_config:\n  zero_stag: 2\n");
  give(s, "ds.json", "deepspeed", R"({"zero_optimization": {"stag": 2}, "train_batchsize": 8})");
  give(s, "lf.yaml", "llamafactory", "model_name_or_path: x\nddp_timeoutt: 10\n");
  EXPECT_EQ(
      said(s, "CMD-ACCELERATE-KEY"),
      (Lines{"a.yaml:1: num_machine is unknown; num_machines was probably meant | a.yaml:1：未知的键 num_machine；大概想写 num_machines | "
             "sed -i 's/\\bnum_machine\\b/num_machines/' /home/train/work/a.yaml",
             "a.yaml:3: deepspeed_config.zero_stag is unknown; zero_stage was probably meant | a.yaml:3：未知的键 "
             "deepspeed_config.zero_stag；大概想写 zero_stage | sed -i 's/\\bzero_stag\\b/zero_stage/' /home/train/work/a.yaml"}));
  EXPECT_EQ(
      said(s, "CMD-DEEPSPEED-KEY"),
      (Lines{"ds.json: train_batchsize is unknown; train_batch_size was probably meant | ds.json：未知的键 train_batchsize；大概想写 "
             "train_batch_size | sed -i 's/\"train_batchsize\"/\"train_batch_size\"/' /home/train/work/ds.json",
             "ds.json: zero_optimization.stag is unknown; stage was probably meant | ds.json：未知的键 zero_optimization.stag；大概想写 "
             "stage | sed -i 's/\"stag\"/\"stage\"/' /home/train/work/ds.json"}));
  EXPECT_EQ(said(s, "CMD-LLAMAFACTORY-KEY"),
            (Lines{"lf.yaml:2: ddp_timeoutt is unknown; ddp_timeout was probably meant | lf.yaml:2：未知的键 ddp_timeoutt；大概想写 "
                   "ddp_timeout | sed -i 's/^ddp_timeoutt:/ddp_timeout:/' /home/train/work/lf.yaml"}));
}

TEST(ConfigRules, StagesAndOffload) {
  auto of = [](const std::string& zero, std::string_view code) {
    Situation s = docker_host_network();
    give(s, "ds.json", "deepspeed", R"({"zero_optimization": )" + zero + "}");
    return said(s, code);
  };
  EXPECT_EQ(of(R"({"stage": 0})", "CMD-DEEPSPEED-STAGE"),
            (Lines{"ds.json: ZeRO stage 0: nothing is sharded | ds.json：ZeRO stage 0：不切分 | "}));
  EXPECT_EQ(of(R"({"stage": 4})", "CMD-DEEPSPEED-STAGE"), Lines{});
  EXPECT_EQ(of(R"({"stage": "3"})", "CMD-DEEPSPEED-OFFLOAD"), Lines{});
  EXPECT_EQ(of(R"({"stage": 2, "offload_param": {"device": "cpu"}})", "CMD-DEEPSPEED-OFFLOAD"),
            (Lines{"ds.json: offload_param to cpu with stage 2; it needs stage 3 | ds.json：offload_param 到 cpu，但 stage 为 2；至少需要 "
                   "stage 3 | "}));
  EXPECT_EQ(of(R"({"offload_optimizer": {"device": "nvme"}})", "CMD-DEEPSPEED-OFFLOAD"),
            (Lines{"ds.json: offload_optimizer to nvme with stage 0; it needs stage 1 | ds.json：offload_optimizer 到 nvme，但 stage 为 "
                   "0；至少需要 stage 1 | "}));
  EXPECT_EQ(of(R"({"stage": 3, "offload_param": {"device": "nvme"}})", "CMD-DEEPSPEED-OFFLOAD"),
            (Lines{"ds.json: offload_param to nvme without nvme_path | ds.json：offload_param 到 nvme，但没有 nvme_path | "}));
  EXPECT_EQ(of(R"({"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/x"}})", "CMD-DEEPSPEED-OFFLOAD"), Lines{});
  EXPECT_EQ(of(R"({"stage": 3, "gather_16bit_weights_on_model_save": true})", "DATA-ZERO3-MERGE"),
            (Lines{"ds.json: stage 3 with gather_16bit_weights_on_model_save: true | ds.json：stage 3 且 "
                   "gather_16bit_weights_on_model_save: true | "}));
}

TEST(ConfigRules, Timeouts) {
  auto of = [](const std::string& role, const std::string& text, std::string_view code) {
    Situation s = docker_host_network();
    give(s, "c.yaml", role, text);
    return said(s, code);
  };
  const char* kCode = "CMD-LLAMAFACTORY-TIMEOUT";
  EXPECT_EQ(
      of("llamafactory", "dataset: d\nddp_timeout: 1800\n", kCode),
      (Lines{"c.yaml:2: ddp_timeout is 1800 s; rank 0 prepares the data first, the others wait | c.yaml:2：ddp_timeout 为 1800 秒；rank 0 "
             "先预处理数据，其余 rank 等待 | sed -i 's/^ddp_timeout:.*/ddp_timeout: 180000000/' /home/train/work/c.yaml"}));
  EXPECT_EQ(
      of("llamafactory", "dataset: d\n", kCode),
      (Lines{"c.yaml: ddp_timeout is 1800 s by default; rank 0 prepares the data first, the others wait | c.yaml：ddp_timeout 为 默认的 "
             "1800 秒；rank 0 先预处理数据，其余 rank 等待 | echo 'ddp_timeout: 180000000' >> /home/train/work/c.yaml"}));
  for (const char* quiet : {"ddp_timeout: 10\n", "dataset: d\nddp_timeout: 1801\n", "dataset: d\nddp_timeout: soon\n",
                            "dataset: d\nstreaming: true\n", "dataset: d\ntokenized_path: p\n"})
    EXPECT_EQ(of("llamafactory", quiet, kCode), Lines{}) << quiet;
  auto lightning = [&](const std::string& timeout) {
    return of("lightning", "trainer:\n  strategy:\n    init_args:\n      timeout: " + timeout + "\n", "CMD-LIGHTNING-TIMEOUT");
  };
  EXPECT_EQ(lightning("\"00:01:30\""),
            (Lines{"c.yaml:4: the timeout for a rank is 90 s | c.yaml:4：等待一个 rank 最多 90 秒 | sed -i 's/timeout: .*/timeout: "
                   "\"01:00:00\"/' /home/train/work/c.yaml"}));
  for (const char* quiet : {"\"00:30:00\"", "601", "0", "soon", "[1]"}) EXPECT_EQ(lightning(quiet), Lines{}) << quiet;
}

}  // namespace
}  // namespace phalanx::doctor::test
