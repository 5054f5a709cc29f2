// Every verb and option of another launcher that has a counterpart leads to it, and what the advice names exists.
#include "cli/flags/foreign_words.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
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

std::string dashed(std::string_view name) { return (name.size() == 1 ? "-" : "--") + std::string(name); }

TEST(ForeignWords, EveryOptionLeadsToOneOfOursOrSaysWhyThereIsNone) {
  for (const ForeignWord& row : foreign_options()) {
    expect_to_exist(row);
    for (std::string_view name : base::split(row.word, '|')) {
      if (find_flag(Verb::kRun, name) || (name.size() == 1 && find_flag(Verb::kRun, name[0]))) continue;
      if (advice_for_foreign_option(Verb::kRun, name) != row.advice) continue;  // it means something else at run, or names what run has not
      EXPECT_EQ(refusal({"run", dashed(name), "x"}).hint, row.advice) << name;
      if (name.size() == 1) continue;
      const std::string underscores = base::replace_all(name, "-", "_");
      EXPECT_EQ(refusal({"run", "--" + underscores + "=3", "x"}).hint, row.advice) << name;
    }
  }
  for (const ForeignWord& row : foreign_options_of_verbs()) {
    expect_to_exist(row);
    for (const VerbRow& verb : verb_table())
      if ((row.verbs & bit(verb.verb)) != 0)
        for (std::string_view name : base::split(row.word, '|')) {
          if (find_flag(verb.verb, name) || (name.size() == 1 && find_flag(verb.verb, name[0]))) continue;
          EXPECT_TRUE(advice_for_foreign_option(verb.verb, name).has_value()) << verb.name << " " << dashed(name);
        }
  }
}

// "write --tail N" at `ps`, which has no --tail, would be a second error.
TEST(ForeignWords, NoAdviceNamesAnOptionThatTheVerbDoesNotHave) {
  for (const VerbRow& verb : verb_table()) {
    for (std::span<const ForeignWord> table : {foreign_options(), foreign_options_of_verbs()})
      for (const ForeignWord& row : table)
        for (std::string_view name : base::split(row.word, '|')) {
          const std::string advice = advice_for_foreign_option(verb.verb, name).value_or("");
          if (!advice.starts_with("write --")) continue;
          const std::string flag = advice.substr(8, advice.find_first_of(" =,;", 8) - 8);
          EXPECT_TRUE(find_flag(verb.verb, flag)) << verb.name << " " << dashed(name) << ": " << advice;
        }
  }
}

std::vector<std::vector<std::string>> rows_of(const std::string& name) {
  std::ifstream file(std::string(PHALANX_TEST_DATA) + "/foreign/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    rows.emplace_back();
    for (std::string_view part : base::split(line, '\t')) rows.back().emplace_back(part);
  }
  return rows;
}

// Every verb of the tools, decided one by one in a file: the same here, with a counterpart, or with none.
TEST(ForeignWords, EveryVerbOfTheToolsIsDecided) {
  const auto rows = rows_of("verbs.tsv");
  EXPECT_GE(rows.size(), 110u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3u);
    const bool ours = find_verb(row[1]) != nullptr;
    EXPECT_EQ(ours, row[2] == "same") << row[0] << " " << row[1];
    if (ours) continue;
    EXPECT_EQ(advice_for_foreign_verb(row[1]).has_value(), row[2] == "lead") << row[0] << " " << row[1];
  }
}

TEST(ForeignWords, EveryOptionOfTheToolsIsDecided) {
  const auto rows = rows_of("options.tsv");
  EXPECT_GE(rows.size(), 400u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 5u);
    const std::string name = row[2].substr(row[2].starts_with("--") ? 2 : 1), line = row[0] + " " + row[1] + " " + row[2];
    const VerbRow* verb = find_verb(row[3]);
    ASSERT_TRUE(verb) << line;
    const bool ours = name.size() == 1 ? find_flag(verb->verb, name[0]) != nullptr : find_flag(verb->verb, name) != nullptr;
    const std::string advice = advice_for_foreign_option(verb->verb, name).value_or("");
    EXPECT_EQ(ours, row[4] == "same" || row[4] == "other") << line;
    if (row[4] == "lead") {
      EXPECT_NE(advice, "") << line;
    } else if (row[4] == "none") {
      EXPECT_EQ(advice, "") << line;
    }
    if (!ours && advice != "") { EXPECT_EQ(refusal({row[3], row[2], "x"}).hint, advice) << line; }
  }
}

// The same letter, another meaning: what docker's users write after it shows which they mean.
TEST(ForeignWords, ALetterThatIsAnotherOptionHere) {
  for (const char* verb : {"run", "exec"}) {
    EXPECT_EQ(refusal({verb, "-it", "image", "bash"}).hint, "omit it: the output is shown here; -i is --include") << verb;
    EXPECT_EQ(refusal({verb, "-i", "-t", "image", "bash"}).hint, "omit it: the output is shown here; -i is --include") << verb;
    EXPECT_EQ(refusal({verb, "-e", "A=1", "true"}).hint, "write --env A=1; -e is --exclude") << verb;
  }
  const base::Error volume = refusal({"run", "-v", "/data:/data", "image", "python", "train.py"});
  EXPECT_EQ(volume.message, "-v \"/data:/data\": a volume, not a command");
  EXPECT_TRUE(volume.hint.ends_with("--container-args '-v /data:/data'; -v is --verbose")) << volume.hint;
  EXPECT_TRUE(parse_command_line(Words{"run", "-v", "./train.sh"}).ok());
  EXPECT_TRUE(parse_command_line(Words{"run", "-i", "t,u", "--", "x"}).ok());
  EXPECT_EQ(refusal({"stop", "-t", "5", "a"}).hint, "write --grace DURATION");
  EXPECT_EQ(refusal({"run", "-p", "8080:80", "--", "x"}).hint, "omit it: the ranks use the network of their host");
  EXPECT_EQ(refusal({"logs", "-p", "a"}).hint, "write --attempt N");
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
  for (const ForeignWord& row : foreign_options_of_verbs()) expect_chinese(row);
}

// What a front door knows leads to it, and what it refuses is said with its reason.
TEST(ForeignWords, OptionsThatAFrontDoorKnowsLeadToIt) {
  EXPECT_EQ(refusal({"run", "--zero_stage", "3", "x"}).hint, "use phalanx accelerate launch, which takes it");
  EXPECT_EQ(refusal({"run", "--use-env", "x"}).hint, "use phalanx python -m torch.distributed.launch, which takes it");
  EXPECT_EQ(refusal({"run", "--numa-binding", "node", "x"}).hint, "ranks are bound to the CPUs near their GPUs");
}

// The guide has the same tables, in each language in its own words.
std::string tables(words::Language language) {
  const bool chinese = language == words::Language::kChinese;
  auto cell = [&](std::string_view advice) { return base::replace_all(words::said_in(language, std::string(advice)), "|", "\\|"); };
  auto from = [](const ForeignWord& row) { return row.tools.empty() ? std::string_view("-") : row.tools; };
  std::string text =
      chinese ? "## 子命令\n\n| 键入的 | 来自 | 应键入 |\n|---|---|---|\n" : "## Verbs\n\n| typed | from | type instead |\n|---|---|---|\n";
  for (const ForeignWord& row : foreign_verbs()) text += fmt::format("| `{}` | {} | {} |\n", row.word, from(row), cell(row.advice));
  text += chinese ? "\n## 选项\n\n| 键入的 | 用于 | 来自 | 应改为 |\n|---|---|---|---|\n"
                  : "\n## Options\n\n| typed | at | from | instead |\n|---|---|---|---|\n";
  for (std::span<const ForeignWord> table : {foreign_options(), foreign_options_of_verbs()})
    for (const ForeignWord& row : table) {
      std::string names, verbs;
      for (std::string_view name : base::split(row.word, '|')) names += fmt::format("{}`{}`", names.empty() ? "" : ", ", dashed(name));
      for (const VerbRow& verb : verb_table())
        if ((row.verbs & bit(verb.verb)) != 0) verbs += fmt::format("{}`{}`", verbs.empty() ? "" : ", ", verb.name);
      text +=
          fmt::format("| {} | {} | {} | {} |\n", names, verbs.empty() ? (chinese ? "任何" : "any") : verbs, from(row), cell(row.advice));
    }
  return text;
}

TEST(ForeignWords, TheGuideListsThemAll) {
  for (words::Language language : {words::Language::kEnglish, words::Language::kChinese}) {
    const bool chinese = language == words::Language::kChinese;
    const std::string data = PHALANX_TEST_DATA;
    const std::string path = data.substr(0, data.rfind("/tests/data")) + "/docs/guides/coming-from" + (chinese ? ".zh-CN.md" : ".md");
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string guide = text.str();
    const size_t at = guide.find(chinese ? "## 子命令" : "## Verbs");
    ASSERT_NE(at, std::string::npos) << path;
    if (const char* record = std::getenv("PHALANX_RECORD_GUIDE"))  // the beginning of two files that get the guides as they should be
      std::ofstream(std::string(record) + (chinese ? ".zh-CN.md" : ".md")) << guide.substr(0, at) << tables(language);
    EXPECT_EQ(guide.substr(at), tables(language)) << path;
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
