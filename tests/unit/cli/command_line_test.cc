#include "cli/flags/command_line.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/text.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

Invocation read(const Words& words) {
  auto invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok()) << (invocation.ok() ? "" : invocation.error().render());
  return invocation.ok() ? *invocation : Invocation{};
}

base::Error refusal(const Words& words) {
  auto invocation = parse_command_line(words);
  EXPECT_FALSE(invocation.ok()) << base::join(words, " ");
  if (invocation.ok()) return {};
  EXPECT_EQ(invocation.error().kind, base::ErrorKind::kUsage);
  return invocation.error();
}

TEST(CommandLine, TheCommandKeepsItsOwnFlags) {
  Invocation plain = read({"run", "-H", "a", "python", "train.py", "--lr", "3", "--json", "--", "-H"});
  EXPECT_EQ(plain.verb, Verb::kRun);
  EXPECT_EQ(plain.value(Flag::kHosts), "a");
  EXPECT_FALSE(plain.has(Flag::kJson));
  EXPECT_EQ(plain.operands, (Words{"python", "train.py", "--lr", "3", "--json", "--", "-H"}));
  EXPECT_EQ(read({"run", "--", "--weird", "x"}).operands, (Words{"--weird", "x"}));
  EXPECT_EQ(read({"run", "--", "--"}).operands, (Words{"--"}));
  EXPECT_EQ(read({"run", "-"}).operands, (Words{"-"}));
}

TEST(CommandLine, EverySpellingOfAFlag) {
  for (const Words& words : {Words{"run", "--nproc-per-node", "4", "x"}, Words{"run", "--nproc_per_node=4", "x"},
                             Words{"run", "--num_gpus", "4", "x"}, Words{"run", "--num-gpus=4", "x"}})
    EXPECT_EQ(read(words).value(Flag::kNproc), "4") << words[1];
  for (const Words& words : {Words{"run", "-H", "a,b", "x"}, Words{"run", "-Ha,b", "x"}, Words{"run", "--host", "a,b", "x"},
                             Words{"run", "--hosts=a,b", "x"}, Words{"run", "-qHa,b", "x"}})
    EXPECT_EQ(read(words).value(Flag::kHosts), "a,b") << words[1];
  EXPECT_TRUE(read({"run", "-q", "--json", "x"}).has(Flag::kQuiet));
}

TEST(CommandLine, RepeatableFlagsKeepTheirOrder) {
  EXPECT_EQ(read({"run", "--env", "A=1", "--env=B=2=3", "--env", "A=", "x"}).values(Flag::kEnv), (Words{"A=1", "B=2=3", "A="}));
}

TEST(CommandLine, MixedOperandsOfTrain) {
  Invocation train = read({"train", "config.yaml", "-H", "a", "lr=1", "--json", "--", "--x"});
  EXPECT_EQ(train.operands, (Words{"config.yaml", "lr=1", "--x"}));
  EXPECT_TRUE(train.has(Flag::kJson));
}

TEST(CommandLine, HelpAndVersion) {
  EXPECT_EQ(read({"--help"}).verb, Verb::kHelp);
  EXPECT_EQ(read({"-h"}).verb, Verb::kHelp);
  EXPECT_EQ(read({"--version"}).verb, Verb::kVersion);
  EXPECT_EQ(read({"-V"}).verb, Verb::kVersion);
  Invocation help = read({"run", "-H", "a", "--help", "--nonsense"});
  EXPECT_EQ(help.verb, Verb::kHelp);
  EXPECT_EQ(help.operands, (Words{"run"}));
  EXPECT_EQ(read({"help", "run"}).operands, (Words{"run"}));
  EXPECT_EQ(read({"help", "--help"}).operands, (Words{"help"}));
  EXPECT_EQ(read({"run", "python", "--help"}).operands, (Words{"python", "--help"}));
}

TEST(CommandLine, TheAgentReadsItsWordsItself) { EXPECT_EQ(read({"agent", "--help", "-x"}).operands, (Words{"--help", "-x"})); }

TEST(CommandLine, UnknownFlagsGetTheNearestOne) {
  EXPECT_EQ(refusal({"run", "--hotfile", "x"}).hint, "did you mean --hostfile?");
  EXPECT_EQ(refusal({"run", "--hostfiel=x"}).hint, "did you mean --hostfile?");
  EXPECT_EQ(refusal({"run", "--nproc-per", "2"}).hint, "did you mean --nproc-per-node?");
  EXPECT_EQ(refusal({"run", "--num_gpsu", "2"}).hint, "did you mean --nproc-per-node?");
  EXPECT_EQ(refusal({"run", "--lr", "3"}).message, "phalanx run has no option --lr");
  EXPECT_EQ(refusal({"run", "-hostfile", "x"}).hint, "long options have two dashes: --hostfile");
  EXPECT_EQ(refusal({"run", "-env", "A=1"}).hint, "long options have two dashes: --env");
  EXPECT_EQ(refusal({"run", "-z"}).message, "phalanx run has no option -z");
  EXPECT_EQ(refusal({"run", "---"}).message, "phalanx run has no option ---");
  EXPECT_EQ(refusal({"run", "--=x"}).message, "phalanx run has no option --");
  EXPECT_EQ(refusal({"run", "-\xff"}).message, "phalanx run has no option -\\xff");
  EXPECT_EQ(refusal({"run", "--man", "x"}).message, "phalanx run has no option --man");
}

TEST(CommandLine, FlagsOfOtherLaunchersGetAdvice) {
  EXPECT_EQ(refusal({"run", "--no-ssh", "train.py"}).hint,
            "omit it and run phalanx once, on one machine: phalanx numbers the hosts itself");
  EXPECT_EQ(refusal({"run", "--rdzv-endpoint=a:29400", "x"}).hint, "write --master-addr ADDRESS and --master-port PORT, or omit it");
  EXPECT_EQ(refusal({"run", "-m", "pkg"}).hint, "write the interpreter: -- python -m MODULE; phalanx sets no limit on memory");
  EXPECT_EQ(refusal({"run", "-np", "4", "x"}).hint, "write --nproc-per-node N (ranks per host) or host:slots");
}

TEST(CommandLine, MissingAndMisplacedValues) {
  EXPECT_EQ(refusal({"run", "-H"}).message, "-H needs a value");
  EXPECT_EQ(refusal({"run", "-H", "--nnodes", "2"}).message, "-H needs a value, but \"--nnodes\" follows");
  EXPECT_EQ(refusal({"run", "-H", "-q", "x"}).message, "-H needs a value, but \"-q\" follows");
  EXPECT_EQ(refusal({"run", "-H", "--", "x"}).message, "-H needs a value, but \"--\" follows");
  EXPECT_EQ(refusal({"run", "--hosts=", "x"}).message, "--hosts: the value is empty");
  EXPECT_EQ(refusal({"run", "-H", "", "x"}).message, "-H: the value is empty");
  EXPECT_EQ(refusal({"run", "--json=1", "x"}).message, "--json takes no value: \"--json=1\"");
  EXPECT_EQ(refusal({"run", "-q1", "x"}).message, "phalanx run has no option -1 (in \"-q1\")");
}

TEST(CommandLine, ValuesAreHeldAgainstTheirRow) {
  EXPECT_EQ(refusal({"run", "--master_port", "70000", "x"}).message, "--master_port: \"70000\" is not a whole number from 1 to 65535");
  EXPECT_EQ(refusal({"run", "--nnodes", "0", "x"}).message, "--nnodes: \"0\" is not a whole number from 1 to 65536");
  EXPECT_EQ(refusal({"run", "--nproc-per-node", "gpus", "x"}).message,
            "--nproc-per-node: \"gpus\" is not a whole number from 1 to 4096 or one of auto, gpu, cpu");
  EXPECT_EQ(refusal({"run", "--nproc-per-node", "gpus", "x"}).hint, "did you mean gpu?");
  EXPECT_EQ(refusal({"run", "--nproc-per-node", "-1", "x"}).message,
            "--nproc-per-node: \"-1\" is not a whole number from 1 to 4096 or one of auto, gpu, cpu");
  EXPECT_EQ(refusal({"run", "--grace", "10", "x"}).hint, "for seconds write 10s");
  EXPECT_EQ(refusal({"run", "--stall", "25h", "x"}).message, "--stall: 25h is out of range: from 0 s to 1 d");
  EXPECT_EQ(refusal({"run", "--on-stall", "wait", "x"}).message, "--on-stall: \"wait\" is not one of report, restart, stop");
  EXPECT_EQ(refusal({"run", "--grace", "2h", "x"}).message, "--grace: 2h is out of range: from 0 s to 1 h");
  EXPECT_EQ(refusal({"run", "--log-max", "1KiB", "x"}).message, "--log-max: 1KiB is too small: the minimum is 64 KiB");
  EXPECT_EQ(refusal({"run", "--lease", "1s", "x"}).message, "--lease: 1s is out of range: from 3 s to 1 h");
  EXPECT_EQ(refusal({"run", "--color", "alway", "x"}).hint, "did you mean always?");
  EXPECT_EQ(refusal({"run", "--fold", "ON", "x"}).message, "--fold: \"ON\" is not one of auto, on, off");
  EXPECT_EQ(refusal({"run", "--env", "A", "x"}).hint, "write --env A=value, or pass on this machine's value with --export A");
  EXPECT_EQ(refusal({"run", "--env", "A B=1", "x"}).message, "--env: \"A B\" is not the name of a variable");
  EXPECT_EQ(refusal({"run", "--ssh-option", "-p 22", "x"}).message, "--ssh-option: \"-p 22\" is not an option of ssh -o");
  EXPECT_EQ(refusal({"run", "--export", "[", "x"}).cause, "a '[' starts a set that is not well formed");
  read({"run", "--export", "*", "--ssh-option", "Port=22", "--grace", "0", "--connect-timeout=1m30s", "x"});
}

TEST(CommandLine, ElasticRangesHaveTheSmallerNumberFirst) {
  read({"run", "--nnodes", "1:4", "x"});
  base::Error error = refusal({"run", "--nnodes", "4:2", "x"});
  EXPECT_EQ(error.message, "--nnodes: 4 is more than 2");
  EXPECT_EQ(error.hint, "write the smaller number first: --nnodes 2:4");
  EXPECT_EQ(refusal({"run", "--nnodes", "1:x", "x"}).message.rfind("--nnodes: ", 0), 0u);
  EXPECT_EQ(refusal({"run", "--nnodes", "0:2", "x"}).message.rfind("--nnodes: ", 0), 0u);
  EXPECT_EQ(refusal({"run", "--nnodes", "1:2:3", "x"}).message.rfind("--nnodes: ", 0), 0u);
}

TEST(CommandLine, TwiceIsAnErrorThatShowsBoth) {
  EXPECT_EQ(refusal({"run", "-H", "a", "--host=b", "x"}).message, "--hosts is given twice: -H a and --host b");
  EXPECT_EQ(refusal({"run", "-qq", "x"}).message, "--quiet is given twice: -q and -q");
}

TEST(CommandLine, VerbsAreKnown) {
  EXPECT_EQ(read({}).verb, Verb::kHelp);
  EXPECT_EQ(refusal({"rum"}).hint, "did you mean phalanx run?");
  EXPECT_EQ(refusal({"train.py"}).hint, "phalanx run -- train.py ...");
  EXPECT_EQ(refusal({"python", "train.py"}).hint, "phalanx run -- python ...");
  EXPECT_EQ(refusal({"-q", "run"}).hint, "put options after it: phalanx run [options] -- command");
  EXPECT_EQ(refusal({"\x1b[2J"}).message, "\"\\x1b[2J\" is not a verb of phalanx");
  EXPECT_EQ(refusal({"version", "x"}).message, "phalanx version takes no arguments: \"x\"");
}

TEST(CommandLine, RandomWordsNeverCrash) {
  const Words pieces{"-H",       "--",     "-",     "--env",     "A=1",          "--nnodes", "2",      "run",  "--json",  "-q",
                     "--hosts=", "x",      "",      "--no-such", "-Hq",          "=",        "--env=", "\xff", "--grace", "1s",
                     "help",     "--help", "train", "plan",      "--include=a@b"};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Words words{std::vector<std::string>{"run", "plan", "train", "help", "completion", "version"}[random() % 6]};
    for (size_t n = random() % 6; n > 0; --n) words.push_back(pieces[random() % pieces.size()]);
    auto invocation = parse_command_line(words);
    if (!invocation.ok()) { ASSERT_FALSE(invocation.error().message.empty()); }
  }
}

TEST(FlagTable, EveryRowIsWholeAndEveryNameIsUnique) {
  for (const VerbRow& verb : verb_table()) {
    std::set<std::string> names;
    for (const FlagRow& flag : flag_table()) {
      if ((flag.verbs & bit(verb.verb)) == 0) continue;
      std::vector<std::string> spellings{std::string(flag.name)};
      if (flag.short_name) spellings.emplace_back(1, flag.short_name);
      for (std::string_view alias : base::split(flag.aliases, '|'))
        if (!alias.empty()) spellings.emplace_back(alias);
      for (const std::string& spelling : spellings) EXPECT_TRUE(names.insert(spelling).second) << spelling;
    }
  }
  for (const FlagRow& flag : flag_table()) {
    EXPECT_EQ(&row(flag.flag), &flag);
    EXPECT_FALSE(flag.help.english.empty()) << flag.name;
    EXPECT_NE(flag.help.in(base::Language::kChinese), flag.help.english) << flag.name;
    EXPECT_EQ(flag.kind == ValueKind::kNone, flag.metavar.empty()) << flag.name;
    EXPECT_NE(flag.verbs, 0u) << flag.name;
    EXPECT_EQ(flag.name.find('_'), std::string_view::npos) << flag.name;
  }
}

}  // namespace
}  // namespace phalanx::cli
