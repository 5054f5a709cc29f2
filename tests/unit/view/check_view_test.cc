#include "view/check/view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "base/json_fields.h"
#include "base/text.h"
#include "base/unicode.h"
#include "doctor/accepted.h"
#include "situations.h"
#include "view/check/changes.h"
#include "view/check/layout.h"

namespace phalanx::view {
namespace {

using base::Language;
using doctor::Examination;
using doctor::Finding;
using doctor::Row;
using doctor::Severity;
using doctor::Situation;

constexpr Row::Check* kNoCheck = nullptr;
constexpr Row kPort{"RDZV-PORT-TAKEN", Severity::kError, kNoCheck};
constexpr Row kShm{"FS-SHM-SMALL", Severity::kWarning, kNoCheck};
constexpr Row kZone{"TIME-ZONE-DIFFERS", Severity::kNote, kNoCheck};

// `count` machines like the first of `s`, named gpu01 …, with a mesh of all pairs.
Situation many(Situation s, size_t count) {
  doctor::HostView first = s.hosts[0];
  s.hosts.clear();
  s.mesh.links.clear();
  for (size_t h = 0; h < count; ++h) {
    doctor::HostView host = first;
    host.name = host.facts.machine.hostname = fmt::format("gpu{:02}", h + 1);
    host.address = fmt::format("10.1.0.{}", 11 + h);
    host.clock_offset_ns = static_cast<int64_t>(h) * 70'000 - 200'000;
    s.hosts.push_back(host);
  }
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      hosts::Link link;
      link.from = static_cast<int64_t>(a);
      link.to = static_cast<int64_t>(b);
      link.outcome = wire::LinkOutcome::kOk;
      link.round_trip_ns = 60'000 + static_cast<int64_t>(a + b) * 1'000;
      link.bytes_per_second = 4'000'000'000 - static_cast<int64_t>(a) * 1'000'000;
      s.mesh.links.push_back(link);
    }
  return s;
}

Examination three(size_t hosts) {
  Examination e;
  e.findings.push_back({&kPort,
                        {1},
                        {"port 29500 belongs to pid 4242 (python train.py)", "端口 29500 被进程 4242（python train.py）占用"},
                        "kill 4242",
                        "gpu02"});
  std::vector<size_t> all;
  for (size_t h = 0; h < hosts; ++h) all.push_back(h);
  e.findings.push_back({&kShm, all, {"64 MiB; 8 ranks with loaders need about 4 GiB", "64 MiB；8 个带加载进程的 rank 约需 4 GiB"}, "", ""});
  e.findings.push_back({&kZone, {1}, {"Asia/Shanghai; the others Etc/UTC", "Asia/Shanghai；其余为 Etc/UTC"}, "", ""});
  e.errors = e.warnings = e.notes = 1;
  return e;
}

Situation odd_one_of_eight() {
  Situation s = many(doctor::test::bond_infiniband(), 8);
  machine::Facts& odd = s.hosts[1].facts;
  odd.gpus.devices.pop_back();
  odd.gpus.driver = "535.129.03";
  odd.gpus.cuda_driver = 12020;
  odd.infiniband.devices[3].ports[0].state = "INIT";
  odd.storage.shm_total_bytes = odd.storage.shm_free_bytes = 64 << 20;
  s.hosts[1].clock_offset_ns = 31'000'000'000;
  for (hosts::Link& link : s.mesh.links)
    if (link.from == 1 && link.to == 4) link.outcome = wire::LinkOutcome::kTimeout, link.bytes_per_second = link.round_trip_ns = 0;
  return s;
}

Situation many_kinds(size_t count) {
  Situation s = many(doctor::test::bond_infiniband(), count);
  for (size_t h = 3; h < count; h += 4) s.hosts[h].facts.limits.nofile = 1024;
  for (size_t h : {5u, 9u}) s.hosts[h].facts.software.packages["torch"] = "2.3.1";
  s.hosts[7].facts.gpus.devices[2].name = "NVIDIA A100-SXM4-40GB";
  s.hosts[11].facts.storage.paths[0].exists = false;
  s.hosts[12].facts.storage.hung = {s.hosts[12].facts.storage.paths[0].path};
  s.hosts[20].facts.machine.memory_bytes /= 2;
  s.hosts[21].facts.gaps = {{"storage:/data", "no answer for 1.2 s; in state D, waiting in fuse_get_req"}};
  s.hosts[30].probed = false;
  s.hosts[30].error = "ssh: connect to host gpu31 port 22: Connection timed out";
  s.hosts[30].facts = {};
  return s;
}

// tests/unit/view/golden/NAME.txt; PHALANX_GOLDEN=write makes it anew.
void expect_golden(const std::string& name, const std::string& text) {
  std::string data = PHALANX_TEST_DATA;
  std::string path = data.substr(0, data.rfind("/data")) + "/unit/view/golden/" + name + ".txt";
  if (const char* write = std::getenv("PHALANX_GOLDEN"); write && std::string_view(write) == "write") {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "look at it, then: PHALANX_GOLDEN=write view_test --gtest_filter='Check*'";
}

CheckStyle style(size_t columns, Language language = Language::kEnglish) {
  CheckStyle s;
  s.columns = columns;
  s.language = language;
  return s;
}

TEST(CheckView, Goldens) {
  expect_golden("check-1", check_text(doctor::test::single_machine(), {}, style(80)));
  expect_golden("check-2-alike", check_text(doctor::test::docker_host_network(), {}, style(100)));
  Situation two = many(doctor::test::bond_infiniband(), 2);
  two.hosts[1].facts.machine.distribution = "Ubuntu 22.04.4 LTS";
  two.hosts[1].facts.gpus.driver = "535.129.03";
  expect_golden("check-2-tie", check_text(two, three(2), style(100)));
  expect_golden("check-8-odd", check_text(odd_one_of_eight(), three(8), style(120)));
  expect_golden("check-8-odd-zh", check_text(odd_one_of_eight(), three(8), style(120, Language::kChinese)));
  expect_golden("check-8-odd-60", check_text(odd_one_of_eight(), three(8), style(60)));
  expect_golden("check-33-kinds", check_text(many_kinds(33), three(33), style(100)));
  CheckStyle coloured = style(100);
  coloured.colour = true;
  coloured.utf8 = false;
  expect_golden("check-8-odd-colour-ascii", check_text(odd_one_of_eight(), three(8), coloured));
}

// Clusters of every size with any mixture of differences, in every width: no line is wider than the terminal.
TEST(CheckView, NoLineIsWiderThanTheTerminal) {
  std::mt19937 random(7);
  auto once_in = [&](unsigned n) { return random() % n == 0; };
  for (int round = 0; round < 300; ++round) {
    Situation (*bases[])() = {doctor::test::plain_ethernet, doctor::test::bond_infiniband, doctor::test::docker_host_network,
                              doctor::test::single_machine};
    size_t count = 1 + random() % 64;
    Situation s = many(bases[random() % 4](), count);
    for (doctor::HostView& host : s.hosts) {
      if (once_in(9)) host.name = std::string(1 + random() % 70, 'n') + std::to_string(random() % 100);
      if (once_in(9)) host.facts.machine.distribution = "统信服务器操作系统 20 统信服务器操作系统";
      if (once_in(9)) host.facts.limits.nofile = random() % 4096;
      if (once_in(9)) host.facts.gpus.nvml_error = std::string(random() % 200, 'x');
      if (once_in(9)) host.facts.storage.paths[0].path = "/" + std::string(random() % 300, 'p');
      if (once_in(9)) host.facts.gaps.push_back({"storage", "\x1b[2J\xff 等待 fuse_get_req 没有响应"});
      if (once_in(9)) host.address = "fd00:1234:5678:9abc:def0:1234:5678:9abc";
      if (once_in(20)) host = {host.name, false, std::string(random() % 400, 'e'), {}, {}, 0, 0, "", ""};
    }
    Examination e = once_in(3) ? Examination{} : three(count);
    CheckStyle how = style(60 + random() % 141, once_in(2) ? Language::kChinese : Language::kEnglish);
    if (count < 2) e = {};
    std::string text = check_text(s, e, how);
    EXPECT_TRUE(base::is_utf8(text));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    for (std::string_view line : base::split_lines(text)) {
      ASSERT_LE(base::display_width(line), how.columns) << "round " << round << ", " << count << " hosts: " << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(CheckView, OddHostsAreMarkedAndNotOnlyColoured) {
  for (size_t columns : {60u, 120u, 200u}) {
    std::string text = check_table(odd_one_of_eight(), style(columns));
    size_t marks = 0;
    for (size_t at = text.find(kOddMark); at != std::string::npos; at = text.find(kOddMark, at + 1)) ++marks;
    EXPECT_EQ(marks, 5u) << text;  // GPUs, driver, InfiniBand, /dev/shm, clock
  }
}

TEST(CheckView, AcceptedFindingsAreListedLastAndCountedApart) {
  Examination e = three(8);
  doctor::accept(odd_one_of_eight(), {{"RDZV-PORT-TAKEN", {}}, {"FS-SHM-SMALL", {"gpu01"}}}, e);
  const std::string text = check_text(odd_one_of_eight(), e, style(120));
  EXPECT_NE(text.find("\naccepted   RDZV-PORT-TAKEN: "), std::string::npos) << text;
  EXPECT_NE(text.find("\nwarning    FS-SHM-SMALL: "), std::string::npos) << text;
  EXPECT_LT(text.find("TIME-ZONE-DIFFERS"), text.find("accepted "));
  EXPECT_EQ(text.find("kill 4242\n"), std::string::npos) << "what is accepted needs no fix";
  EXPECT_NE(text.find("1 warning, 1 note, 2 accepted"), std::string::npos) << text;
  const base::Json json = check_json(odd_one_of_eight(), e);
  EXPECT_EQ(json["errors"], 0);
  EXPECT_EQ(json["accepted"], 2);
  EXPECT_EQ(json["findings"][0]["accepted"], false);
  EXPECT_EQ(json["findings"][2]["accepted"], true);
  EXPECT_EQ(json["findings"][2]["severity"], "error");
}

TEST(CheckView, ColourChangesNothingButColour) {
  CheckStyle plain = style(100), coloured = style(100);
  coloured.colour = true;
  std::string text = check_text(odd_one_of_eight(), three(8), coloured), bare;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') i = text.find('m', i);
    else bare += text[i];
  }
  EXPECT_EQ(bare, check_text(odd_one_of_eight(), three(8), plain));
}

TEST(CheckView, AHostThatDidNotAnswerIsALineAndTheOthersAreShown) {
  Situation s = many(doctor::test::plain_ethernet(), 3);
  s.hosts[2] = {"gpu03", false, "gpu03: Connection timed out", {}, {}, 0, 0, "", ""};
  std::string text = check_text(s, {}, style(80));
  EXPECT_NE(text.find("gpu[01-02] (2 hosts)"), std::string::npos) << text;
  EXPECT_NE(text.find("no answer  gpu03: Connection timed out\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n1 host did not answer.\n")) << text;
  for (doctor::HostView& host : s.hosts) host.probed = false;
  EXPECT_EQ(check_table(s, style(80)), "");
}

TEST(NameHosts, FoldsAndCounts) {
  Situation s = many(doctor::test::plain_ethernet(), 64);
  EXPECT_EQ(name_hosts(s, {1}, style(80)), "gpu02");
  EXPECT_EQ(name_hosts(s, {0, 1, 2, 7}, style(80)), "gpu[01-03,08]");
  std::vector<size_t> all, even;
  for (size_t h = 0; h < 64; ++h) (h % 2 ? all : even).push_back(h);
  EXPECT_EQ(name_hosts(s, even, style(80)), "32 of 64 hosts (gpu[01,03,05,07,09,11,13,15,17,19,21,23…)");
  all.insert(all.end(), even.begin(), even.end());
  EXPECT_EQ(name_hosts(s, all, style(80)), "all 64 hosts");
  EXPECT_EQ(name_hosts(s, all, style(80, Language::kChinese)), "全部 64 台主机");
}

// What the shell makes of the broken command is what it makes of the whole one.
TEST(WrapCommand, MeansTheSameToTheShell) {
  auto output = [](const std::string& command) {
    std::string text;
    FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return text;
    char buffer[256];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    ::pclose(pipe);
    return text;
  };
  for (const std::string command : {
           R"(printf '%s\n' one two 'three  four five' "six \" seven  eight" nine\ ten  eleven)",
           R"(printf '%s|' --filter='sport = :29500' $(echo a b c) "it's" '"' end of a longer command line)",
           R"(printf %s 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' b)",
           R"(printf %s short # a comment that is longer than the line, which cannot be broken)",
       })
    for (size_t columns : {12u, 20u, 33u, 60u, 200u}) {
      std::string broken;
      for (const std::string& line : wrap_command(command, columns)) broken += "   " + line + "\n";
      EXPECT_EQ(output(broken), output(command)) << broken;
    }
  EXPECT_EQ(wrap_command("kill 4242", 20), std::vector<std::string>{"kill 4242"});
  EXPECT_EQ(wrap_command("mount -o remount,size=64G /dev/shm", 30),
            (std::vector<std::string>{"mount -o remount,size=64G \\", "  /dev/shm"}));
}

TEST(Share, GivesNobodyMoreThanNeeded) {
  EXPECT_EQ(share({10, 10}, 100), (std::vector<size_t>{10, 10}));
  EXPECT_EQ(share({10, 90}, 60), (std::vector<size_t>{10, 50}));
  EXPECT_EQ(share({90, 10, 90}, 60), (std::vector<size_t>{25, 10, 25}));
  EXPECT_EQ(share({}, 60), std::vector<size_t>{});
}

TEST(CheckJson, HoldsFactsMeshFindingsAndChoices) {
  Situation s = odd_one_of_eight();
  machine::CommandFile file;
  file.path = "/home/train/work/ds.json";
  file.text = "{\"wandb_key\": \"8d2f77aa01\"}";
  file.sha256 = "ab12";
  s.hosts[0].facts.command.files.push_back(file);
  s.hosts[7].probed = false;
  s.hosts[7].error = "no route";
  job::Choices choices;
  choices.hosts.resize(8);
  choices.hosts[0].gpus = {0, 2};
  choices.hosts[0].settings.push_back({"NCCL_SOCKET_IFNAME", "bond0", {"the address all hosts share", "所有主机共有的地址"}});
  base::Json json = check_json(s, three(8), &choices);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["errors"], 1);
  ASSERT_EQ(json["findings"].size(), 3u);
  const base::Json& first = json["findings"][0];
  EXPECT_EQ(first["code"], "RDZV-PORT-TAKEN");
  EXPECT_EQ(first["severity"], "error");
  EXPECT_EQ(first["hosts"], base::Json::array({"gpu02"}));
  EXPECT_EQ(first["title"], "a port the job needs is taken");
  EXPECT_EQ(first["evidence"], "port 29500 belongs to pid 4242 (python train.py)");
  EXPECT_EQ(first["fix"], "kill 4242");
  EXPECT_EQ(first["where"], "gpu02");
  EXPECT_EQ(json["findings"][1]["code"], "FS-SHM-SMALL");
  EXPECT_NE(json["findings"][1]["advice"].get<std::string>().find("$ docker run --shm-size"), std::string::npos);
  EXPECT_EQ(json["unreachable"], base::Json::array({"gpu08"}));
  ASSERT_EQ(json["hosts"].size(), 8u);
  EXPECT_EQ(json["hosts"][1]["facts"]["gpus"]["driver"], "535.129.03");
  EXPECT_EQ(json["hosts"][1]["clock_offset_ns"], 31'000'000'000);
  EXPECT_EQ(json["hosts"][0]["facts"]["command"]["files"][0]["sha256"], "ab12");
  EXPECT_EQ(base::to_text(json).find("8d2f77aa01"), std::string::npos);
  EXPECT_EQ(json["hosts"][7]["error"], "no route");
  EXPECT_FALSE(json["hosts"][7].contains("facts"));
  EXPECT_EQ(json["mesh"]["links"].size(), 56u);
  EXPECT_EQ(json["choices"]["hosts"][0]["settings"][0]["why"], "the address all hosts share");
  EXPECT_FALSE(check_json(s, {}).contains("choices"));
  // The facts can be read back: a report is also a recording.
  auto facts = base::from_json<machine::Facts>(json["hosts"][1]["facts"]);
  ASSERT_TRUE(facts.ok()) << facts.error().render();
  EXPECT_EQ(facts->gpus.devices.size(), 7u);
}

TEST(CheckChanges, TellsWhatIsNewAndWhatIsGoneAndNothingElse) {
  CheckRound before{many(doctor::test::plain_ethernet(), 4), three(4)}, now = before;
  EXPECT_EQ(check_changes(before, now, "12:00", style(120)), "");
  now.examination.findings[1].evidence = {"63 MiB; 8 ranks with loaders need about 4 GiB", ""};  // a value that moves is no news
  EXPECT_EQ(check_changes(before, now, "12:00", style(120)), "");
  now.examination.findings[0].hosts = {1, 2};                           // the port is now taken on gpu03 too
  now.examination.findings.pop_back();                                  // the time zone is mended
  now.situation.hosts[3] = {"gpu04", false, "", {}, {}, 0, 0, "", ""};  // gpu04 is silent
  EXPECT_EQ(check_changes(before, now, "12:00", style(120)),
            "12:00  new   no answer from gpu04\n"
            "12:00  new   error RDZV-PORT-TAKEN: gpu03: port 29500 belongs to pid 4242 (python train.py)\n"
            "12:00  gone  note TIME-ZONE-DIFFERS: gpu02: Asia/Shanghai; the others Etc/UTC\n");
  EXPECT_EQ(check_changes(now, before, "12:00", style(120)),
            "12:00  new   note TIME-ZONE-DIFFERS: gpu02: Asia/Shanghai; the others Etc/UTC\n"
            "12:00  gone  no answer from gpu04\n"
            "12:00  gone  error RDZV-PORT-TAKEN: gpu03: port 29500 belongs to pid 4242 (python train.py)\n");
  std::string changes = check_changes(before, now, "12:00", style(60));
  for (std::string_view line : base::split_lines(changes)) EXPECT_LE(base::display_width(line), 60u) << line;
}

}  // namespace
}  // namespace phalanx::view
