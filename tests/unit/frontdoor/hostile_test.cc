// Files that nobody should have: bounds, names that ssh would take for options, bombs.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "frontdoor/accelerate_config.h"
#include "frontdoor/deepspeed_hosts.h"
#include "world.h"

namespace phalanx::frontdoor {
namespace {

std::string refused(std::string_view text) {
  base::Result<Hostfile> file = parse_deepspeed_hostfile(text, "h");
  EXPECT_FALSE(file.ok()) << text;
  return file.ok() ? "" : file.error().message;
}

TEST(Hostfile, NamesThatAreNoNames) {
  for (const char* name : {"-oProxyCommand=x", "a;b", "$(x)", "a'b", "a,b", "a:1", "x.x.x.x"})
    EXPECT_TRUE(refused(fmt::format("{} slots=1", name)).starts_with("h:1: ")) << name;
}

TEST(Hostfile, SlotsOutOfBounds) {
  EXPECT_NE(refused("a slots=5000"), "");
  EXPECT_NE(refused("a slots=99999999999999999999"), "");
  EXPECT_NE(refused("a slots="), "");
  EXPECT_NE(refused("a slots=-1"), "");
}

TEST(Hostfile, MoreSlotsByNamingTwiceStaysBounded) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a slots=4096\n";
  base::Result<Hostfile> file = parse_deepspeed_hostfile(text, "h");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->hosts[0].slots, kMostSlots);
}

// LD_PRELOAD of a stranger's .deepspeed_env in /tmp would run his program in every rank.
TEST(DeepspeedEnv, IsNotUsedWhereAnotherUserCanChangeIt) {
  World world;
  world.files = {{"hosts", "a slots=1\nb slots=1\n"}, {".deepspeed_env", "LD_PRELOAD=/tmp/x.so\n"}, {"/home/ann/.deepspeed_env", "A=1\n"}};
  world.of_strangers = {".deepspeed_env"};
  base::Result<Translation> result = translate({{}, {"deepspeed", "--hostfile", "hosts", "train.py"}}, world);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->environment_files, (std::vector<std::string>{"/home/ann/.deepspeed_env"}));
  ASSERT_FALSE(result->findings.empty());
  EXPECT_TRUE(result->findings[0].text.english.starts_with(".deepspeed_env is not used: another user can change it"));
}

// HF_HOME is often a folder that a whole group may write to. Who changes the file there would choose the hosts that this user's code and
// variables go to.
TEST(AccelerateConfig, NamesNoHostsWhereAnotherUserCanChangeIt) {
  const std::string path = "/shared/hf/accelerate/default_config.yaml";
  World world;
  world.variables["HF_HOME"] = "/shared/hf";
  world.files = {{"/shared/hosts", "evil1 slots=1\nevil2 slots=1\n"}};
  for (const char* config : {"deepspeed_config:\n  deepspeed_hostfile: /shared/hosts\ndistributed_type: DEEPSPEED\nnum_machines: 2\n",
                             "mpirun_config:\n  mpirun_hostfile: /shared/hosts\ndistributed_type: MULTI_CPU\n"}) {
    world.files[path] = config;
    world.of_strangers = {};
    EXPECT_TRUE(translate({{}, {"accelerate", "launch", "a.py"}}, world).ok()) << config;
    world.of_strangers = {path};
    base::Result<Translation> result = translate({{}, {"accelerate", "launch", "a.py"}}, world);
    ASSERT_FALSE(result.ok()) << config;
    EXPECT_EQ(result.error().cause, "another user can change the file");
    EXPECT_TRUE(translate({{}, {"accelerate", "launch", "--config_file", path, "a.py"}}, world).ok()) << "named by the user";
  }
  world.files[path] = "distributed_type: MULTI_GPU\nnum_processes: 8\n";
  EXPECT_TRUE(translate({{}, {"accelerate", "launch", "a.py"}}, world).ok()) << "what starts nothing elsewhere is taken";
}

TEST(AccelerateConfig, AnAliasBombIsRefused) {
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) text += fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  EXPECT_FALSE(parse_accelerate_config(text, "c.yaml").ok());
}

TEST(AccelerateConfig, KeysOfEveryKindOfValue) {
  for (const char* value : {"[1]", "{a: 1}", "1e999", "\"\\0\"", "~", ".nan"})
    for (const char* key : {"num_processes", "mixed_precision", "gpu_ids", "main_process_port", "fsdp_config", "deepspeed_config"}) {
      World world;
      world.files["c.yaml"] = fmt::format("distributed_type: FSDP\n{}: {}\n", key, value);
      (void)translate({{}, {"accelerate", "launch", "--config_file", "c.yaml", "train.py"}}, world);
    }
}

}  // namespace
}  // namespace phalanx::frontdoor
