// Lines of other launchers on our command line: where the door begins, which options win, and what is printed.
#include "cli/front_door.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "cli/flags/run_options.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

FrontDoor opened(const Words& words, const std::string& program = "phalanx") {
  base::Result<std::optional<FrontDoor>> door = open_front_door(program, words);
  EXPECT_TRUE(door.ok()) << door.error().message;
  EXPECT_TRUE(door.ok() && door->has_value()) << base::join(words, " ");
  return door.ok() && *door ? **door : FrontDoor();
}

bool is_door(const Words& words) {
  base::Result<std::optional<FrontDoor>> door = open_front_door("/usr/bin/phalanx", words);
  return !door.ok() || door->has_value();
}

TEST(FrontDoor, WhereItBegins) {
  EXPECT_TRUE(is_door({"torchrun", "train.py"}));
  EXPECT_TRUE(is_door({"-H", "a,b", "torchrun", "train.py"}));
  EXPECT_TRUE(is_door({"--dry-run", "--", "A=1", "deepspeed", "train.py"}));
  EXPECT_FALSE(is_door({}));
  EXPECT_FALSE(is_door({"run", "--", "torchrun", "train.py"}));
  EXPECT_FALSE(is_door({"check", "torchrun"}));
  EXPECT_FALSE(is_door({"--no-such-option", "torchrun", "train.py"}));
  EXPECT_FALSE(is_door({"--help"}));
  EXPECT_FALSE(is_door({"bash", "train.sh"}));
}

TEST(FrontDoor, HelpIsAskedOfTheLauncherNotOfTheScript) {
  auto asked = [](const Words& words, const std::string& program = "phalanx") { return launcher_asked_for_help(program, words); };
  EXPECT_EQ(asked({"torchrun", "--help"}), "torchrun");
  EXPECT_EQ(asked({"accelerate", "launch", "-h"}), "accelerate");
  EXPECT_EQ(asked({"llamafactory-cli", "train", "--help"}), "llamafactory-cli");
  EXPECT_EQ(asked({"--help"}, "/usr/local/bin/torchrun"), "torchrun");
  EXPECT_EQ(asked({"torchrun", "train.py", "--help"}), std::nullopt);
  EXPECT_EQ(asked({"python", "--help"}), std::nullopt);
  EXPECT_EQ(asked({"--help"}), std::nullopt);
  EXPECT_EQ(asked({}), std::nullopt);
}

TEST(FrontDoor, ALinkNamedLikeALauncher) {
  const FrontDoor door = opened({"--nproc_per_node", "2", "train.py"}, "/usr/local/bin/torchrun");
  EXPECT_TRUE(run_line(door).starts_with("phalanx run --nproc-per-node 2 -- python"));
}

TEST(FrontDoor, OptionsInFrontWin) {
  const FrontDoor door =
      opened({"-H", "a,b", "--nproc-per-node", "gpu", "--env", "A=2", "A=1", "torchrun", "--nproc_per_node", "2", "train.py"});
  base::Result<Invocation> invocation = parse_command_line(door.args);
  ASSERT_TRUE(invocation.ok()) << invocation.error().message;
  EXPECT_EQ(invocation->value(Flag::kNproc), "gpu");
  EXPECT_EQ(invocation->values(Flag::kEnv), (Words{"A=1", "A=2"}));  // the last one counts
  EXPECT_NE(
      decisions_text(door, base::Language::kEnglish).find("--nproc-per-node 2 → nothing  (overridden by the option in front of torchrun)"),
      std::string::npos);
}

TEST(FrontDoor, HostsAreGivenOnce) {
  const std::string folder = scratch::folder("front_door_test");
  std::ofstream(folder + "/hosts.txt") << "a slots=2\n";
  base::Result<std::optional<FrontDoor>> door =
      open_front_door("phalanx", Words{"-H", "b", "deepspeed", "--hostfile", folder + "/hosts.txt", "train.py"});
  ASSERT_FALSE(door.ok());
  EXPECT_EQ(door.error().message, "hosts are given twice: in front of deepspeed and by it");
}

TEST(FrontDoor, SeveralNodesNeedTheirHosts) {
  FrontDoor door = opened({"torchrun", "--nnodes", "2", "train.py"});
  base::Result<Invocation> invocation = parse_command_line(door.args);
  ASSERT_TRUE(invocation.ok());
  EXPECT_EQ(settle_hosts(door, *invocation).error().message, "torchrun is asked for 2 nodes, but no hosts are named");
  FrontDoor named = opened({"-H", "a,b", "torchrun", "--nnodes", "2", "train.py"});
  Invocation with_hosts = parse_command_line(named.args).value();
  EXPECT_TRUE(settle_hosts(named, with_hosts).ok());
}

// The line of node 1, with `front` before the launcher: the options of the run it becomes, or its error; what is said about its rank.
struct NodeLine {
  base::Result<RunOptions> options;
  std::string shown;
};
NodeLine node_line(Words front, const Words& more = {"--master_addr", "10.0.0.1"}) {
  front.insert(front.end(), {"torchrun", "--nnodes", "3", "--node_rank", "1"});
  front.insert(front.end(), more.begin(), more.end());
  front.push_back("train.py");
  FrontDoor door = opened(front);
  Invocation invocation = parse_command_line(door.args).value();
  base::Status settled = settle_hosts(door, invocation);
  const std::string shown = findings_text(door, base::Language::kEnglish) + decisions_text(door, base::Language::kEnglish);
  if (!settled.ok()) return {std::move(settled).error(), shown};
  return {run_options(invocation), shown};
}

TEST(FrontDoor, ALineWithANodeRankIsOneOfSeveralStartedByHand) {
  const NodeLine by_hand = node_line({"--token-file", "/tmp/token"});
  ASSERT_TRUE(by_hand.options.ok()) << by_hand.options.error().message;
  EXPECT_EQ(by_hand.options->node_rank, 1);
  EXPECT_EQ(by_hand.options->nnodes, 3);
  EXPECT_EQ(by_hand.options->master_addr, "10.0.0.1");
  EXPECT_NE(by_hand.shown.find("  --node_rank 1 → --node-rank 1  (no hosts are named: the line is started on each of 3 machines, and they "
                               "meet at 10.0.0.1)\n"),
            std::string::npos)
      << by_hand.shown;
  EXPECT_NE(by_hand.shown.find("phalanx run --node-rank 1 --nnodes 3"), std::string::npos) << by_hand.shown;

  const NodeLine address_in_front = node_line({"--master-addr", "10.0.0.2"}, {});
  EXPECT_EQ(address_in_front.options.value().node_rank, 1);
  EXPECT_EQ(node_line({"--node-rank", "2"}).options.value().node_rank, 2);
  EXPECT_NE(node_line({"--node-rank", "2"}).shown.find("--node_rank 1 → nothing  (overridden by the option in front of torchrun)"),
            std::string::npos);
}

TEST(FrontDoor, ANodeRankIsOfNoUseWithHostsOrWithoutAMeetingPlace) {
  const NodeLine hosts = node_line({"-H", "a,b,c"});
  EXPECT_FALSE(hosts.options.value().node_rank);
  EXPECT_NE(hosts.shown.find("warning: --node_rank 1 has no effect: the hosts are named, and Phalanx numbers them itself\n"
                             "  hint: start the line once, on one machine\n"),
            std::string::npos)
      << hosts.shown;
  EXPECT_EQ(node_line({}, {}).options.error().message, "torchrun is asked for 3 nodes, but no hosts are named");
  EXPECT_EQ(node_line({}, {"--master_addr", "localhost"}).options.error().message, "torchrun is asked for 3 nodes, but no hosts are named");
  EXPECT_EQ(node_line({}, {"--nnodes", "1", "--master_addr", "10.0.0.1"}).options.value().node_rank, std::nullopt);
  EXPECT_EQ(node_line({}, {"--node_rank", "3", "--master_addr", "10.0.0.1"}).options.error().message,
            "--node-rank 3: with --nnodes 3 the highest is 2");
  EXPECT_EQ(node_line({}, {"--max-restarts", "2", "--master_addr", "10.0.0.1"}).options.error().message,
            "--node-rank and --max-restarts cannot be combined");
}

TEST(FrontDoor, SecretsAreNotPrinted) {
  const FrontDoor door = opened({"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789", "torchrun", "train.py"});
  const std::string text = run_line(door) + decisions_text(door, base::Language::kEnglish) + findings_text(door, base::Language::kEnglish);
  EXPECT_EQ(text.find("hf_abcdef"), std::string::npos) << text;
  RunOptions options = run_options(parse_command_line(door.args).value()).value();
  EXPECT_EQ(options.env[0].second, "hf_abcdefghijklmnopqrstuvwxyz0123456789");
}

TEST(FrontDoor, TheScriptsArgumentsStayWhole) {
  const Words script = {"train.py", "--name", "a b", "$HOME", "", "--", "-H", "x"};
  Words words = {"torchrun", "--nproc-per-node", "2"};
  words.insert(words.end(), script.begin(), script.end());
  const Words command = parse_command_line(opened(words).args).value().operands;
  EXPECT_EQ(Words(command.begin() + 1, command.end()), script);
}

TEST(FrontDoor, TextAndScripts) {
  const std::string folder = scratch::folder("front_door_test");
  const std::string path = folder + "/run.sh";
  std::ofstream(path)
      << "#!/bin/bash\ncd /data\nmkdir -p logs\nexport NCCL_DEBUG=WARN\nN=4\nnohup torchrun --nproc_per_node $N train.py > logs/x 2>&1 &\n";
  base::Result<FrontDoor> door = translate_text(path);
  ASSERT_TRUE(door.ok()) << door.error().message;
  EXPECT_TRUE(run_line(*door).starts_with("phalanx run --nproc-per-node 4 --env NCCL_DEBUG=WARN -- python")) << run_line(*door);
  EXPECT_EQ(door->args[0], "init");
  EXPECT_FALSE(translate_text("ls -l").ok());
  EXPECT_FALSE(translate_text("torchrun 'x").ok());
  EXPECT_FALSE(translate_text("").ok());
}

}  // namespace
}  // namespace phalanx::cli
