// Every verb and option of another launcher that has a counterpart leads to it, and what the advice names exists.
#include "cli/flags/foreign_words.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/text.h"
#include "cli/flags/command_line.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

base::Error refusal(const Words& words) {
  base::Result<Invocation> read = parse_command_line(words);
  EXPECT_FALSE(read.ok()) << base::join(words, " ");
  return read.ok() ? base::fail(base::ErrorKind::kUsage, "") : std::move(read).error();
}

bool is_flag_of_any_verb(std::string_view name) {
  for (const VerbRow& verb : verb_table())
    if (find_flag(verb.verb, name)) return true;
  return false;
}

// "write --nnodes N": --nnodes is a flag; "phalanx stop RUN": stop is a verb.
void expect_to_exist(const ForeignWord& row) {
  std::vector<std::string_view> words = base::split_words(row.advice);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.size() > 2 && word.starts_with("--") && row.advice.find("accelerate launch") == std::string_view::npos) {
      std::string_view name = word.substr(2, word.find_first_of(",;:", 2) - 2);
      EXPECT_TRUE(is_flag_of_any_verb(name)) << row.word << " leads to --" << name << ", which is no option";
    }
    if (word == "phalanx" && i + 1 < words.size() && row.advice.find("omit it and run") == std::string_view::npos) {
      std::string_view next = words[i + 1];
      if (next.ends_with(':') || next.ends_with(',')) next.remove_suffix(1);
      const bool sentence = next == "provides" || next == "notices" || next == "reaches" || next == "tests" || next == "uses" ||
                            next == "once" || next == "numbers" || next == "sets" || next == "copies";
      const bool door = next == "accelerate" || next == "torchrun" || next == "deepspeed" || next == "python";
      EXPECT_TRUE(sentence || door || find_verb(next)) << row.word << " leads to " << next << ", which is no verb";
    }
  }
}

TEST(ForeignWords, EveryVerbLeadsToOneOfOurs) {
  for (const ForeignWord& row : foreign_verbs()) {
    EXPECT_FALSE(find_verb(row.word)) << row.word << " is a verb of ours";
    const base::Error error = refusal({std::string(row.word)});
    EXPECT_EQ(error.message, fmt::format("\"{}\" is not a verb of phalanx", row.word));
    EXPECT_EQ(error.hint, row.advice) << row.word;
    EXPECT_EQ(base::exit_code(error.kind), 2);
    expect_to_exist(row);
  }
}

TEST(ForeignWords, EveryOptionLeadsToOneOfOursOrSaysWhyThereIsNone) {
  for (const ForeignWord& row : foreign_options()) {
    EXPECT_EQ(advice_for_foreign_option(row.word), row.advice);
    expect_to_exist(row);
    if (find_flag(Verb::kRun, row.word)) continue;
    if (row.word.size() == 1) {
      if (find_flag(Verb::kRun, row.word[0])) continue;
      EXPECT_EQ(refusal({"run", "-" + std::string(row.word), "x"}).hint, row.advice) << row.word;
      continue;
    }
    EXPECT_EQ(refusal({"run", "--" + std::string(row.word), "x"}).hint, row.advice) << row.word;
    const std::string underscores = base::replace_all(row.word, "-", "_");
    EXPECT_EQ(refusal({"run", "--" + underscores + "=3", "x"}).hint, row.advice) << row.word;
  }
}

// In Chinese, only commands, options and names of programs stay as they are.
TEST(ForeignWords, TheAdviceIsGivenInChinese) {
  auto expect_chinese = [](const ForeignWord& row) {
    const std::string chinese = words::said_in(words::Language::kChinese, row.advice);
    for (const char* english : {"omit ", "write ", "use ", " the ", " for ", " its ", " or ", " is ", " are ", " and ", " then "})
      EXPECT_EQ(chinese.find(english), std::string::npos) << row.word << ": " << chinese;
  };
  for (const ForeignWord& row : foreign_verbs()) expect_chinese(row);
  for (const ForeignWord& row : foreign_options()) expect_chinese(row);
}

// What a front door knows leads to it, and what it refuses is said with its reason.
TEST(ForeignWords, OptionsThatAFrontDoorKnowsLeadToIt) {
  EXPECT_EQ(refusal({"run", "--zero_stage", "3", "x"}).hint, "use phalanx accelerate launch, which takes it");
  EXPECT_EQ(refusal({"run", "--use-env", "x"}).hint, "use phalanx python -m torch.distributed.launch, which takes it");
  EXPECT_EQ(refusal({"run", "--numa-binding", "node", "x"}).hint, "ranks are bound to the CPUs near their GPUs");
}

// The guide has the same table, in both languages.
TEST(ForeignWords, TheGuideListsThemAll) {
  for (const char* name : {"/docs/guides/coming-from.md", "/docs/guides/coming-from.zh-CN.md"}) {
    const std::string data = PHALANX_TEST_DATA;
    std::ifstream file(data.substr(0, data.rfind("/tests/data")) + name);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string guide = text.str();
    ASSERT_FALSE(guide.empty()) << name;
    auto expect_row = [&](const std::string& typed, const ForeignWord& row) {
      const std::string advice = base::replace_all(row.advice, "|", "\\|");
      const std::string line = fmt::format("| `{}` | {} | {} |\n", typed, row.tools.empty() ? "-" : row.tools, advice);
      EXPECT_NE(guide.find(line), std::string::npos) << name << " lacks " << line;
    };
    for (const ForeignWord& row : foreign_verbs()) expect_row(std::string(row.word), row);
    for (const ForeignWord& row : foreign_options()) expect_row((row.word.size() == 1 ? "-" : "--") + std::string(row.word), row);
  }
}

// The verbs and options that were typed in vain.
TEST(ForeignWords, WhatNewUsersTyped) {
  EXPECT_EQ(refusal({"kill"}).hint.substr(0, 16), "phalanx stop RUN");
  EXPECT_EQ(refusal({"status"}).hint, "phalanx ps");
  EXPECT_EQ(refusal({"launch"}).hint, "phalanx accelerate launch train.py, or phalanx run -- python train.py");
  EXPECT_EQ(refusal({"doctor"}).hint, "phalanx check HOSTS");
  EXPECT_EQ(refusal({"run", "--nprocs", "2", "x"}).hint, "write --nproc-per-node N");
  const base::Error docker = refusal({"run", "-e", "FOO=1", "--", "x"});
  EXPECT_EQ(docker.message, "-e \"FOO=1\": a variable, not a host");
  EXPECT_EQ(docker.hint, "write --env FOO=1; -e is --exclude");
  EXPECT_EQ(refusal({"run", "-eFOO=a b", "--", "x"}).hint, "write --env 'FOO=a b'; -e is --exclude");
  EXPECT_TRUE(parse_command_line(Words{"run", "-e", "gpu01:0@gpu02", "--", "x"}).ok());
}

}  // namespace
}  // namespace phalanx::cli
