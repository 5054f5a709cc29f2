// Slots of the pages' commands: known, filled with what was observed, else left as placeholders; and the commands are valid shell.
#include "codes/slots.h"

#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "base/text.h"
#include "codes/code.h"
#include "scratch.h"

namespace phalanx::codes {
namespace {

struct Command {
  std::string_view code, line;
};

std::vector<Command> commands() {
  std::vector<Command> all_of_them;
  for (const Code& code : all())
    for (base::Language language : {base::Language::kEnglish, base::Language::kChinese})
      for (std::string_view line : base::split(code.fix.in(language), '\n'))
        if (line.starts_with("$ ")) all_of_them.push_back({code.name, line.substr(2)});
  return all_of_them;
}

std::string without_slots(std::string_view line) {
  Observed anything;
  for (std::string_view slot : slots()) anything.emplace(slot, "x");
  return fill_command(line, anything);
}

TEST(Slots, EachHasAPlaceInAPageAndAreSortedAndDescribed) {
  std::set<std::string> used;
  for (const Command& c : commands())
    for (size_t at = c.line.find('<'); at != std::string_view::npos; at = c.line.find('<', at + 1))
      if (size_t end = slot_end(c.line, at)) used.emplace(c.line.substr(at + 1, end - at - 2));
  EXPECT_EQ(used, std::set<std::string>(slots().begin(), slots().end()));
  EXPECT_TRUE(std::is_sorted(slots().begin(), slots().end()));
  for (const char* file : {"codes/README.md", "codes/README.zh-CN.md"}) {
    std::ifstream in(std::string(PHALANX_TEST_DATA) + "/../../" + file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::string_view slot : slots()) EXPECT_NE(text.find("`<" + std::string(slot) + ">`"), std::string::npos) << file << ": " << slot;
  }
}

TEST(Slots, OpenWithALowerCaseWordAndNothingElseDoes) {
  EXPECT_EQ(slot_end("kill <pid>", 5), 10u);
  EXPECT_EQ(slot_end("mount <mount point>", 6), 19u);
  for (const char* line : {"< file > out", "<>", "<< EOF >", "<X>", "<a >", "<a", "<4>"}) EXPECT_EQ(slot_end(line, 0), 0u) << line;
  EXPECT_EQ(unknown_slot("rsync <path> <host>:<wherever>"), "<wherever>");
  EXPECT_EQ(unknown_slot("sort < in > out"), "");
}

TEST(Slots, AreFilledWithWhatWasObservedAndElseStay) {
  EXPECT_EQ(fill_command("ssh <host> kill <pid>", {{"pid", "812"}}), "ssh <host> kill 812");
  EXPECT_EQ(fill_command("ls <path> <path>", {{"path", "/a b"}}), "ls '/a b' '/a b'");
  EXPECT_EQ(fill_command("ls <path>", {{"path", ""}}), "ls <path>");
  EXPECT_EQ(fill_command("ls <path>", {{"path", "<pid>; reboot"}}), "ls '<pid>; reboot'");
  EXPECT_EQ(fill_command("ssh <host> true", {{"host", "-oProxyCommand=reboot"}}), "ssh <host> true");
  // A value that needs quotes would end those that are there.
  EXPECT_EQ(fill_command("echo 'a: <path>'", {{"path", "x'; reboot; '"}}), "echo 'a: <path>'");
  EXPECT_EQ(fill_command("echo 'a: <path>'", {{"path", "/ckpt"}}), "echo 'a: /ckpt'");
  EXPECT_EQ(fill_page("About <pid>.\n$ kill <pid>", {{"pid", "812"}}), "About <pid>.\n$ kill 812");
}

TEST(Slots, ACommandIsFilledOnlyAsAWhole) {
  const Code& connect = get("HANG-CONNECT");
  EXPECT_EQ(filled_command(connect, {{"address", "10.0.0.2"}}), "");
  EXPECT_EQ(filled_command(connect, {{"address", "10.0.0.2"}, {"port", "29500"}}), "nc -vz -w 3 10.0.0.2 29500");
  EXPECT_EQ(filled_command(get("HANG-STOPPED"), {{"pid", "812"}}), "kill -CONT 812");
  EXPECT_EQ(filled_command(get("HANG-SWAPPING"), {{"pid", "812"}}), "");  // its commands have no slots
}

// What only one machine has is written as a slot. Addresses of the machine itself are the same everywhere.
TEST(Slots, NoValueOfSomebodysMachineStandsInACommand) {
  regex_t invented;
  ASSERT_EQ(::regcomp(&invented,
                      "\\b(gpu|node|host|worker)-?[0-9]+\\b|\\b([0-9]{1,3}\\.){3}[0-9]{1,3}\\b|(kill|--pid|-p)( -[A-Z0-9]+)? [0-9]+|"
                      "\\b(eth|ib|ens|enp|eno|bond|mlx5_)[0-9]+|/(data|home)/[a-z]|nproc-per-node [2-9]|\\buser@",
                      REG_EXTENDED | REG_NOSUB),
            0);
  auto is_invented = [&](const std::string& line) { return ::regexec(&invented, line.c_str(), 0, nullptr, 0) == 0; };
  for (const Command& c : commands()) {
    std::string line = base::replace_all(base::replace_all(std::string(c.line), "127.0.0.1", ""), "127.0.1.1", "");
    EXPECT_FALSE(is_invented(line)) << c.code << ": " << c.line;
  }
  for (const char* line : {"kill 4711", "kill -9 4711", "ping gpu01", "ssh 192.168.20.14", "py-spy dump --pid 12", "ip link set eth0 up"})
    EXPECT_TRUE(is_invented(line)) << line;
  ::regfree(&invented);
}

// All of them as one script, which the shell reads without running it. Quotes are counted before, because one that stays open would
// swallow the next line.
TEST(Slots, EveryCommandIsValidShell) {
  std::string path = scratch::folder("slots") + "/commands.sh";
  auto accepted = [&](const std::string& script) {
    std::ofstream(path) << script;
    return std::system(("bash -n " + path + " 2>/dev/null").c_str()) == 0;
  };
  ASSERT_FALSE(accepted("echo (version 2: echo)\n"));
  ASSERT_FALSE(accepted("echo 'open\n"));
  std::string script;
  std::set<std::string> lines;
  for (const Command& c : commands()) lines.insert(without_slots(c.line));
  for (const std::string& line : lines) {
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (quote != '\'' && line[i] == '\\') ++i;
      else if (quote == line[i]) quote = 0;
      else if (quote == 0 && (line[i] == '\'' || line[i] == '"')) quote = line[i];
    }
    EXPECT_EQ(quote, 0) << line;
    script += line + "\n";
  }
  EXPECT_GT(lines.size(), 300u);
  if (accepted(script)) return;
  for (const std::string& line : lines) EXPECT_TRUE(accepted(line + "\n")) << line;
  FAIL();
}

}  // namespace
}  // namespace phalanx::codes
