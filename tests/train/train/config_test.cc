// The config file and the environment: what is wrong is named, with its place.
#include "engine/train/config.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/comm/env.h"
#include "engine/train/data_settings.h"

using namespace phalanx;

namespace {

std::string error_of(const std::string& yaml, const std::vector<std::string>& arguments = {}) {
  auto config = engine::train::read_config(yaml, "c.yaml", arguments);
  return config.ok() ? "accepted" : config.error().render();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

const std::string kCorpus = "data: {corpus: x}\n";

TEST(Config, FileAndArguments) {
  auto config = engine::train::read_config("out: o\nseed: 3\ndata:\n  corpus: text file\ntrain:\n  steps: 7\noptimizer: {lr: 1e-2}\n",
                                           "c.yaml", {"train.steps=9", "sample.prompt=a=b"});
  ASSERT_TRUE(config.ok()) << config.error().render();
  EXPECT_EQ(config->data.corpus, "text file");
  EXPECT_EQ(config->train.steps, 9);
  EXPECT_DOUBLE_EQ(config->optimizer.lr, 0.01);
  EXPECT_EQ(config->sample.prompt, "a=b");
  EXPECT_EQ(config->model.layers, 4) << "what is not given keeps its default";
  EXPECT_EQ(base::get_int(engine::train::to_json(*config), "train.steps"), 9);
}

TEST(Config, EveryMistakeHasItsPlace) {
  EXPECT_SAYS(error_of(kCorpus + "train:\n  stps: 5\n"), "error: c.yaml:3:3: unknown key \"train.stps\"");
  EXPECT_SAYS(error_of(kCorpus + "train:\n  stps: 5\n"), "hint: did you mean \"steps\"?");
  EXPECT_SAYS(error_of(kCorpus + "trian:\n  steps: 5\n"), "did you mean \"train\"?");
  EXPECT_SAYS(error_of(kCorpus + "zzz: 5\n"), "known here: out, seed, device, data");
  EXPECT_SAYS(error_of(kCorpus + "train:\n  steps: 5\n  steps: 6\n"), "c.yaml:4:3: \"train.steps\" is given twice, first in line 3");
  EXPECT_SAYS(error_of(kCorpus + "train: {steps: 5}\ntrain: {batch: 6}\n"), "\"train\" is given twice");
  EXPECT_SAYS(error_of(kCorpus + "train:\n  steps: many\n"), "c.yaml:3:10: train.steps is \"many\", but must be a whole number");
  EXPECT_SAYS(error_of(kCorpus + "train:\n  steps: 1e3\n"), "whole number");
  EXPECT_SAYS(error_of(kCorpus + "optimizer:\n  lr: .inf\n"), "must be a number from 0 to 100");
  EXPECT_SAYS(error_of(kCorpus + "optimizer:\n  lr: 0.1x\n"), "must be a number");
  EXPECT_SAYS(error_of(kCorpus + "device: tpu\n"), "one of auto, cpu, cuda");
  EXPECT_SAYS(error_of(kCorpus + "train: 5\n"), "must be a section");
  EXPECT_SAYS(error_of(kCorpus + "seed: [1]\n"), "seed needs one value");
  EXPECT_SAYS(error_of(kCorpus + "model: {width: 100, heads: 3}\n"), "not a multiple of model.heads 3");
  EXPECT_SAYS(error_of("- a\n"), "list of `key: value` lines");
  EXPECT_SAYS(error_of("a: [b\n"), "not valid YAML");
  EXPECT_SAYS(error_of("a: 1\n---\nb: 2\n"), "one YAML document");
  EXPECT_SAYS(error_of("? [a]\n: 1\n"), "a key must be plain text");
  EXPECT_SAYS(error_of(""), "data.corpus is not set");
  EXPECT_SAYS(error_of(std::string(300 << 10, ' ')), "limit");
  EXPECT_SAYS(error_of(std::string(100'000, '[')), "not valid YAML");
}

TEST(Config, Data) {
  EXPECT_SAYS(error_of("", {"data.validation=0"}), "data.corpus is not set, and neither is data.files");
  EXPECT_SAYS(error_of(kCorpus, {"data.files=y"}), "data.corpus and data.files are both set");
  EXPECT_SAYS(error_of(kCorpus, {"data.format=jsonl"}), "data.format is jsonl, but data.corpus is plain text");
  EXPECT_SAYS(error_of("data: {files: x}\n", {"data.format=csv"}), "one of auto, text, lines, jsonl, tokens, nanogpt");
  EXPECT_SAYS(error_of("data: {files: x, streaming: on, remainder: pad}\n"), "the length of a stream is not known");
  EXPECT_SAYS(error_of("data: {files: x, field: a, prompt_field: a}\n"), "are both \"a\"");
  auto config = engine::train::read_config("data: {files: 'a,b', shuffle: off, workers: 3, prefetch: 4, remainder: keep, pad_token: 7}\n",
                                           "c", {"train.batch=24", "train.accumulate=3", "data.streaming=on", "seed=5"});
  ASSERT_TRUE(config.ok()) << config.error().render();
  const engine::data::SetOptions set = engine::train::set_options(*config);
  EXPECT_EQ(set.files, "a,b");
  EXPECT_TRUE(set.streaming);
  EXPECT_EQ(set.shuffle_buffer, 0) << "data.shuffle is off";
  auto loader = engine::train::loader_options(*config, 1, 4);
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ(loader->plan.rows, 6);
  EXPECT_EQ(loader->accumulate, 3);
  EXPECT_EQ(loader->plan.seed, 5u);
  EXPECT_FALSE(loader->plan.shuffle);
  EXPECT_EQ(loader->workers, 3);
  EXPECT_EQ(loader->padding.tokens, 7);
  EXPECT_SAYS(engine::train::loader_options(*config, 1, 5).error().render(), "train.batch=30 or train.batch=15");
}

TEST(Config, Arguments) {
  EXPECT_SAYS(error_of(kCorpus, {"steps"}), "is not KEY=VALUE");
  EXPECT_SAYS(error_of(kCorpus, {"train.step=1"}), "hint: did you mean \"train.steps\"?");
  EXPECT_SAYS(error_of(kCorpus, {"train.steps=0"}), "whole number from 1");
  EXPECT_EQ(engine::train::read_config(kCorpus, "c", {"x"}).error().kind, base::ErrorKind::kUsage);
  EXPECT_SAYS(engine::train::help_of_settings(base::Language::kEnglish), "optimizer.warmup");
}

engine::comm::Lookup variables(std::map<std::string, std::string> map) {
  return [map](const char* name) -> std::optional<std::string> {
    auto found = map.find(name);
    return found == map.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
}

TEST(RankEnv, ReadsWhatLaunchersSet) {
  auto alone = engine::comm::read_rank_env(variables({}));
  EXPECT_EQ(alone->world, 1);
  auto env = engine::comm::read_rank_env(variables({{"RANK", "3"},
                                                    {"WORLD_SIZE", "8"},
                                                    {"LOCAL_RANK", "1"},
                                                    {"LOCAL_WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "fd00::1"},
                                                    {"MASTER_PORT", "29500"},
                                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                    {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                    {"GLOO_SOCKET_IFNAME", "eth0"}}));
  ASSERT_TRUE(env.ok()) << env.error().render();
  EXPECT_EQ(env->rank, 3);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_TRUE(env->agent_store);
  EXPECT_EQ(env->attempt, 2);
  EXPECT_EQ(env->gloo_interfaces, "eth0");
  EXPECT_EQ(engine::comm::read_rank_env(variables({{"RANK", "0"}, {"WORLD_SIZE", "1"}}))->world, 1) << "one rank needs no address";
}

TEST(RankEnv, NamesTheMissingVariable) {
  const std::map<std::string, std::string> good{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    for (const char* value : {"", "x"}) {
      if (std::string(name) == "MASTER_ADDR" && *value) continue;  // any text may be a host's name
      auto bad = good;
      bad[name] = value;
      auto env = engine::comm::read_rank_env(variables(bad));
      ASSERT_FALSE(env.ok()) << name;
      EXPECT_SAYS(env.error().render(), std::string(name) + (*value ? " is invalid" : " is not set"));
      EXPECT_SAYS(env.error().render(), "phalanx run --nproc-per-node 2 -- PROGRAM");
    }
  }
  auto high = good;
  high["RANK"] = "2";
  EXPECT_SAYS(engine::comm::read_rank_env(variables(high)).error().render(), "from 0 to 1");
}

TEST(RankEnv, SettingsOfTheUser) {
  auto set =
      engine::comm::read_rank_env(variables({{"PHALANX_COMM_TIMEOUT", "7"}, {"PHALANX_COMM_SHM", "0"}, {"PHALANX_COMM_CHECK", "1"}}));
  ASSERT_TRUE(set.ok()) << set.error().render();
  EXPECT_EQ(set->comm_timeout_s, 7);
  EXPECT_FALSE(set->comm_shared_memory);
  EXPECT_TRUE(set->comm_check);
  auto unset = engine::comm::read_rank_env(variables({}));
  EXPECT_EQ(unset->comm_timeout_s, 1800);
  EXPECT_TRUE(unset->comm_shared_memory);
  EXPECT_FALSE(unset->comm_check);
  for (const char* name : {"PHALANX_COMM_TIMEOUT", "PHALANX_COMM_SHM", "PHALANX_COMM_CHECK"}) {
    const std::string said = engine::comm::read_rank_env(variables({{name, "-1"}})).error().render();
    EXPECT_SAYS(said, std::string(name) + " is invalid");
    EXPECT_SAYS(said, std::string("hint: unset ") + name);
  }
}

}  // namespace
