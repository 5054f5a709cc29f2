#include "cli/flags/reference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/unicode.h"
#include "cli/flags/command_line.h"
#include "view/command_list.h"

namespace phalanx::cli {
namespace {

using base::Language;

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr
};

// A shell command over a file that holds `content`, named by $FILE.
Outcome shell(const std::string& command, const std::string& content) {
  std::string path = testing::TempDir() + "reference_test." + std::to_string(::getpid());
  std::ofstream(path) << content;
  Outcome outcome;
  FILE* pipe = ::popen(("export LC_ALL=C.UTF-8; FILE='" + path + "'; {\n" + command + "\n} 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) outcome.output.append(buffer, n);
  int status = ::pclose(pipe);
  ::unlink(path.c_str());
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

bool have(const std::string& program) { return shell("command -v " + program, "").code == 0; }

TEST(Help, FitsATerminalInBothLanguages) {
  for (Language language : {Language::kEnglish, Language::kChinese}) {
    std::vector<std::string> texts{help_text(language)};
    for (const VerbRow& verb : verb_table()) texts.push_back(help_text(verb.verb, language));
    for (const std::string& text : texts) {
      EXPECT_TRUE(base::is_utf8(text));
      EXPECT_EQ(text.back(), '\n');
      for (std::string_view line : base::split_lines(text)) {
        EXPECT_LE(base::display_width(line), kHelpColumns) << line;
        EXPECT_FALSE(!line.empty() && base::is_blank(line.back())) << line;
      }
    }
  }
}

TEST(Help, NamesEveryFlagOfTheVerb) {
  for (const VerbRow& verb : verb_table())
    for (const FlagRow* flag : flags_of(verb.verb))
      EXPECT_NE(help_text(verb.verb, Language::kEnglish).find("--" + std::string(flag->name)), std::string::npos) << flag->name;
}

TEST(Help, EveryVerbHasIt) {
  for (const VerbRow& verb : verb_table()) {
    if (verb.hidden) continue;
    for (const char* asked : {"--help", "-h"}) {
      const std::vector<std::string> words = {std::string(verb.name), asked};
      base::Result<Invocation> read = parse_command_line(words);
      ASSERT_TRUE(read.ok()) << verb.name;
      EXPECT_EQ(read->verb, Verb::kHelp) << verb.name;
    }
  }
}

TEST(Help, EveryLauncherHasIt) {
  for (const Launcher& one : launchers()) {
    const std::string text = help_of_launcher(one.peer, base::Language::kEnglish);
    EXPECT_NE(text.find(fmt::format("phalanx [options of run] [VAR=VALUE...] {} ...\n", one.typed)), std::string::npos) << text;
    EXPECT_NE(help_text(base::Language::kEnglish).find(fmt::format("  phalanx {}\n", one.example)), std::string::npos);
    EXPECT_EQ(help_of_launcher(one.peer, base::Language::kChinese).find("Takes the line"), std::string::npos);
  }
}

TEST(Help, SpeaksTheReadersLanguage) {
  EXPECT_NE(help_text(Verb::kRun, Language::kChinese).find("主机"), std::string::npos);
  EXPECT_EQ(help_text(Verb::kRun, Language::kEnglish).find("主机"), std::string::npos);
  EXPECT_EQ(help_text(Language::kEnglish).find("agent "), std::string::npos);  // users never type it
}

constexpr const char* kRegenerate = "run: ./x docs";

TEST(Reference, DocumentsAreUpToDate) {
  std::string data = PHALANX_TEST_DATA;  // …/tests/data, which need not exist
  std::string docs = data.substr(0, data.rfind("/tests/data")) + "/docs/";
  EXPECT_EQ(read(docs + "cli.md"), markdown_reference(Language::kEnglish)) << kRegenerate;
  EXPECT_EQ(read(docs + "cli.zh-CN.md"), markdown_reference(Language::kChinese)) << kRegenerate;
  EXPECT_EQ(read(docs + "commands.md"), view::commands_markdown(Language::kEnglish)) << kRegenerate;
  EXPECT_EQ(read(docs + "commands.zh-CN.md"), view::commands_markdown(Language::kChinese)) << kRegenerate;
}

TEST(ManPage, GroffFindsNothingToWarnAbout) {
  if (!have("groff")) GTEST_SKIP() << "groff is not installed";
  Outcome outcome = shell("groff -man -ww -z -Tutf8 -K utf8 \"$FILE\"", man_page("0.0"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "");
  std::string text = shell("groff -man -Tutf8 -K utf8 -P-cbou \"$FILE\"", man_page("0.0")).output;
  EXPECT_NE(text.find("--hosts HOST[:SLOTS],..."), std::string::npos) << text;
  EXPECT_NE(text.find("phalanx run -H 'gpu[01-04]:8' --env HF_HUB_OFFLINE=1 -- python train.py"), std::string::npos);
}

// What bash offers for the words, as it splits them itself; the last is being completed.
std::string offers(const std::string& words, const std::string& before = "") {
  std::string script = completion_script("bash", Language::kEnglish).value();
  std::string command =
      "bash --norc -c 'source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _phalanx; "
      "IFS=\" \"; echo \"${COMPREPLY[*]}\"' bash \"$FILE\" " +
      words;
  std::string output = shell("cd /; " + before + command, script).output;
  return std::string(base::trim(output));
}

TEST(Completion, Bash) {
  if (!have("bash")) GTEST_SKIP() << "bash is not installed";
  EXPECT_EQ(offers("phalanx ru"), "run");
  EXPECT_EQ(offers("phalanx run --nn"), "--nnodes");
  EXPECT_EQ(offers("phalanx run --fold ''"), "auto on off");
  EXPECT_EQ(offers("phalanx run --fold = ''"), "auto on off");
  EXPECT_EQ(offers("phalanx run --fold ="), "auto on off");
  EXPECT_EQ(offers("phalanx run --fold = o"), "on off");
  EXPECT_EQ(offers("phalanx run -H a : 4 --color n"), "never");
  EXPECT_EQ(offers("phalanx run -H a : 4,b : 2 --col"), "--color");
  EXPECT_EQ(offers("phalanx run --env A = 1 --hostf"), "--hostfile");
  EXPECT_EQ(offers("phalanx run -H '[fd00' :: '1]' : 4 --nproc_per_node 2 --js"), "--json");
  EXPECT_EQ(offers("phalanx run --hostfile etc/host.con"), "etc/host.conf");
  EXPECT_EQ(offers("phalanx run --hostfile = etc/host.con"), "etc/host.conf");
  EXPECT_EQ(offers("phalanx run --workdir us"), "usr");
  EXPECT_EQ(offers("phalanx run --workdir etc/host"), "");  // files are no folders
  EXPECT_EQ(offers("phalanx run -q cat etc/host.con"), "etc/host.conf");
  EXPECT_EQ(offers("phalanx run -- cat --nn"), "");
  EXPECT_EQ(offers("phalanx run cat --nn"), "");
  EXPECT_EQ(offers("phalanx help comp"), "completion");
  EXPECT_EQ(offers("phalanx completion z"), "zsh");
  EXPECT_EQ(offers("phalanx help --ma"), "--man --markdown");
  EXPECT_EQ(offers("phalanx version --"), "--help");
}

// Three runs in a folder of their own: one that goes on and has a name, one that goes on, one that has ended.
std::string runs_here() {
  return "export XDG_STATE_HOME=$(mktemp -d); trap 'rm -rf \"$XDG_STATE_HOME\"' EXIT; R=$XDG_STATE_HOME/phalanx/runs; "
         "mkdir -p $R/20261121-073102-a3f9 $R/20261121-080000-b001 $R/20261121-090000-c002 $R/.removed-x; "
         "printf '{\n  \"name\": \"llama-try\",\n  \"state\": \"running\"\n}\n' > $R/20261121-073102-a3f9/run.json; "
         "printf '{\n  \"state\": \"starting\"\n}\n' > $R/20261121-080000-b001/run.json; "
         "printf '{\n  \"name\": \"nightly\",\n  \"state\": \"ended\"\n}\n' > $R/20261121-090000-c002/run.json; "
         "ln -s 20261121-090000-c002 $R/latest; ";
}

TEST(Completion, BashOffersRuns) {
  if (!have("bash")) GTEST_SKIP() << "bash is not installed";
  auto in_runs = [](const std::string& words) { return offers(words, runs_here()); };
  EXPECT_EQ(in_runs("phalanx stop ''"), "latest 20261121-080000-b001 20261121-073102-a3f9 llama-try");
  EXPECT_EQ(in_runs("phalanx stop n"), "") << "it has ended";
  EXPECT_EQ(in_runs("phalanx logs n"), "nightly");
  EXPECT_EQ(in_runs("phalanx attach lla"), "llama-try");
  EXPECT_EQ(in_runs("phalanx explain lla"), "llama-try");
  EXPECT_EQ(in_runs("phalanx wait 20261121-09"), "20261121-090000-c002");
  EXPECT_EQ(offers("phalanx stop ''", "export XDG_STATE_HOME=/nowhere; "), "latest");
}

TEST(Completion, ZshOffersRuns) {
  if (!have("zsh")) GTEST_SKIP() << "zsh is not installed";
  auto offered = [&](const std::string& which) {
    return shell(runs_here() +
                     "zsh -f -c 'compdef() { : }; compadd() { shift; print -r -- \"$*\" }; source $1; _phalanx_offer $2 latest' "
                     "zsh \"$FILE\" " +
                     which,
                 completion_script("zsh", Language::kEnglish).value())
        .output;
  };
  EXPECT_EQ(offered("going"), "latest 20261121-080000-b001 20261121-073102-a3f9 llama-try\n");
  EXPECT_NE(offered("all").find("nightly"), std::string::npos) << offered("all");
}

TEST(Completion, FishOffersRuns) {
  if (!have("fish")) GTEST_SKIP() << "fish is not installed";
  auto offered = [&](const std::string& line) {
    std::string words;
    Outcome outcome = shell(runs_here() + "fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \"$FILE\" '" + line + "'",
                            completion_script("fish", Language::kEnglish).value());
    for (std::string_view offer : base::split_lines(outcome.output)) words += std::string(base::split(offer, '\t')[0]) + " ";
    return words;
  };
  EXPECT_EQ(offered("phalanx stop lla"), "llama-try ");
  EXPECT_EQ(offered("phalanx stop nig"), "");
  EXPECT_EQ(offered("phalanx why nig"), "nightly ");
}

TEST(Completion, ZshReadsItsScript) {
  if (!have("zsh")) GTEST_SKIP() << "zsh is not installed";
  for (Language language : {Language::kEnglish, Language::kChinese}) {
    Outcome outcome = shell("zsh -f -c 'autoload -U compinit; compinit -D; source $1; whence -w _phalanx' zsh \"$FILE\"",
                            completion_script("zsh", language).value());
    EXPECT_EQ(outcome.output, "_phalanx: function\n");
  }
}

TEST(Completion, FishOffers) {
  if (!have("fish")) GTEST_SKIP() << "fish is not installed";
  std::string script = completion_script("fish", Language::kEnglish).value();
  auto offered = [&](const std::string& line) {
    std::string words;
    Outcome outcome = shell("fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \"$FILE\" '" + line + "'", script);
    for (std::string_view offer : base::split_lines(outcome.output)) words += std::string(base::split(offer, '\t')[0]) + " ";
    return words;
  };
  EXPECT_EQ(offered("phalanx run --fold "), "auto off on ");
  EXPECT_EQ(offered("phalanx run --nno"), "--nnodes ");
  EXPECT_EQ(offered("phalanx com"), "completion ");
  EXPECT_EQ(offered("phalanx completion "), "bash fish zsh ");
}

TEST(Completion, OtherShellsAreRefused) {
  EXPECT_EQ(completion_script("tcsh", Language::kEnglish).error().message, "there is no completion for \"tcsh\"");
}

}  // namespace
}  // namespace phalanx::cli
