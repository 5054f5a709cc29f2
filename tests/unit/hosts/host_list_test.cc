#include "hosts/lists/host_list.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "base/name_ranges.h"
#include "base/text.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;

// "user@address:slots" of each host, in order.
std::string shown(const base::Result<HostList>& hosts) {
  if (!hosts.ok()) return "error: " + hosts.error().message;
  std::string out;
  for (const HostSpec& host : *hosts) {
    if (!out.empty()) out += ' ';
    out += host.destination();
    if (host.port) out += "/" + std::to_string(host.port);
    if (host.slots) out += "=" + std::to_string(*host.slots);
  }
  return out;
}

std::string argument(std::string_view text) { return shown(parse_host_argument(text)); }
std::string file(std::string_view text) { return shown(parse_hostfile(text, "h")); }

std::string hint(const base::Result<HostList>& hosts) { return hosts.ok() ? "no error" : hosts.error().hint; }

TEST(HostArgument, Reads) {
  EXPECT_EQ(argument("gpu01"), "gpu01");
  EXPECT_EQ(argument("gpu01,gpu02:4"), "gpu01 gpu02=4");
  EXPECT_EQ(argument("alice@gpu01:8, bob@gpu02 "), "alice@gpu01=8 bob@gpu02");
  EXPECT_EQ(argument("gpu[01-03,7]:8,login"), "gpu01=8 gpu02=8 gpu03=8 gpu7=8 login");
  EXPECT_EQ(argument("r[1-2]n[0-1]-ib"), "r1n0-ib r1n1-ib r2n0-ib r2n1-ib");
  EXPECT_EQ(argument("a@n[1-2]:2"), "a@n1=2 a@n2=2");
  EXPECT_EQ(argument("[fd00::1]:4,[::1],root@[fe80::1%eth0]:2"), "fd00::1=4 ::1 root@fe80::1%eth0=2");
  EXPECT_EQ(argument("10.0.0.[1-2]:8"), "10.0.0.1=8 10.0.0.2=8");
  EXPECT_EQ(argument("a@corp.example@gpu1,DOM\\bob@gpu2"), "a@corp.example@gpu1 DOM\\bob@gpu2");
  EXPECT_EQ(argument("服务器1:2"), "服务器1=2");
  EXPECT_EQ(parse_host_argument("a,b", "--hosts")->at(1).source, "--hosts");
}

TEST(HostArgument, RefusalsNameThePlace) {
  EXPECT_EQ(argument(""), "error: -H names no host");
  EXPECT_EQ(argument("  "), "error: -H names no host");
  EXPECT_EQ(argument("a,,b"), "error: -H, character 3: a host is missing between two commas");
  EXPECT_EQ(argument("a,"), "error: -H, character 3: a host is missing between two commas");
  EXPECT_EQ(argument("a:0"), "error: -H, character 3: slots: \"0\" is not a whole number from 1 to 4096");
  EXPECT_EQ(argument("a:4abc"), "error: -H, character 3: slots: \"4abc\" is not a whole number from 1 to 4096");
  EXPECT_EQ(argument("a:"), "error: -H, character 3: slots: \"\" is not a whole number from 1 to 4096");
  EXPECT_EQ(argument("a:-1"), "error: -H, character 3: slots: \"-1\" is not a whole number from 1 to 4096");
  EXPECT_EQ(argument("a:99999999999999999999"),
            "error: -H, character 3: slots: \"99999999999999999999\" is not a whole number from 1 to 4096");
  EXPECT_EQ(argument("a,b[1-"), "error: -H, character 4: '[' is not closed");
  EXPECT_EQ(argument("a,b[3-1]"), "error: -H, character 5: the range 3-1 runs backwards");
  EXPECT_EQ(argument("服务,b[3-1]"), "error: -H, character 6: the range 3-1 runs backwards");
  EXPECT_EQ(argument("fd00::1"), "error: -H, character 1: \"fd00::1\" has more than one ':'");
  EXPECT_EQ(argument("[fd00::zz]:1"), "error: -H, character 1: \"fd00::zz\" is not an IPv6 address");
  EXPECT_EQ(argument("[fd00::1]4"), "error: -H, character 10: unexpected \"4\" after the address");
  EXPECT_EQ(argument("@a"), "error: -H, character 1: the user before '@' is missing");
  EXPECT_EQ(argument("a@"), "error: -H, character 3: the host name is missing");
  EXPECT_EQ(argument(":4"), "error: -H, character 1: the host name is missing");
  EXPECT_EQ(argument("a b"), "error: -H, character 2: \" \" is not allowed in a host name");
  EXPECT_EQ(argument("a]b,c"), "error: -H, character 2: ']' closes no bracket");
  EXPECT_EQ(hint(parse_host_argument("fd00::1")), "write an IPv6 address between brackets: [fd00::1]");
  EXPECT_EQ(hint(parse_host_argument("ssh://a")), "write user@host, without scheme or path");
  EXPECT_EQ(parse_host_argument("a b").error().kind, ErrorKind::kUsage);
}

TEST(HostArgument, NothingReachesSshAsAnOption) {
  for (std::string_view bad : {"-oProxyCommand=id",
                               "-l",
                               "root@-oX",
                               "-x@host",
                               "a$(id)",
                               "a;id",
                               "a`id`",
                               "a|b",
                               "a\nb",
                               "a\tb",
                               "a'b",
                               "a\"b",
                               "a&b",
                               "a>b",
                               "a*",
                               "a?b",
                               "a\\b",
                               "\x1b[2J",
                               "a\xff",
                               "a\xe2\x80\x8b",
                               "~a",
                               "a=b",
                               "a!b",
                               "a{1,2}"})
    EXPECT_FALSE(parse_host_argument(bad).ok()) << bad;
}

TEST(HostArgument, OneMachineOnce) {
  EXPECT_EQ(argument("a,b,a"), "error: -H, character 5: host a is given twice");
  EXPECT_EQ(argument("a,x@a"), "error: -H, character 3: host a is given twice");
  EXPECT_EQ(argument("n[1-3],n2"), "error: -H, character 8: host n2 is given twice");
  EXPECT_EQ(argument("n[1,1]"), "error: -H, character 1: host n1 is given twice");
}

TEST(HostArgument, Limits) {
  EXPECT_EQ(parse_host_argument("n[1-65536]")->size(), 65'536u);
  EXPECT_EQ(argument("n[0-65536]"), "error: -H, character 2: the ranges make more than 65536 names");
  EXPECT_EQ(argument("n[1-65536],m"), "error: -H, character 12: more than 65536 hosts");
  EXPECT_EQ(argument(std::string(300, 'a')), "error: -H, character 1: a name is longer than 255 bytes");
  EXPECT_FALSE(parse_host_argument(std::string(200, 'u') + "@a").ok());
  EXPECT_FALSE(parse_host_argument(std::string(100'000, '[')).ok());
}

TEST(Hostfile, DeepSpeedAndOpenMpi) {
  EXPECT_EQ(file("worker-0 slots=4\nworker-1 slots=8\n"), "worker-0=4 worker-1=8");
  EXPECT_EQ(file("w0\tslots=4   max_slots=8\nw1 max-slots=6 slots=2\nw2 max_slots=3"), "w0=4 w1=2 w2=3");
  EXPECT_EQ(file("# head\n\n  w0 # tail\nw1 slots=2 # tail\n#w2\n"), "w0 w1=2");
  EXPECT_EQ(file("\xef\xbb\xbfw0 slots=1\r\nw1\r\n"), "w0=1 w1");
  EXPECT_EQ(file("alice@w0 slots=2\nw1 user=bob port=2222 slots=3"), "alice@w0=2 bob@w1/2222=3");
  EXPECT_EQ(file("gpu[01-02,4] slots=8"), "gpu01=8 gpu02=8 gpu4=8");
  EXPECT_EQ(file("[fd00::1] slots=2\nfd00::2 slots=2\nroot@fd00::3"), "fd00::1=2 fd00::2=2 root@fd00::3");
  auto hosts = parse_hostfile("\nw0\n\nw1", "conf/h");
  EXPECT_EQ(hosts->at(1).source, "conf/h:4");
}

TEST(Hostfile, RefusalsNameLineAndCharacterAndSayWhatToWrite) {
  struct Case {
    std::string_view text, message, hint;
  };
  for (const Case& c : {
           Case{"w0 slots = 4", "h:1:4: blanks stand around the '=' of slots", "write slots=4"},
           Case{"w0 slots =4", "h:1:4: blanks stand around the '=' of slots", "write slots=4"},
           Case{"w0 slots= 4", "h:1:4: slots= has no value", "write slots=N without spaces around '='"},
           Case{"w0 slots", "h:1:4: \"slots\" is not a key=value", "write slots=N"},
           Case{"w0 4", "h:1:4: \"4\" is not a key=value", "write slots=4"},
           Case{"w0 w1", "h:1:4: \"w1\" is not a key=value",
                "write one host per line, followed by slots=N, max_slots=N, port=N or user=NAME"},
           Case{"a\nw0 slots=4abc", "h:2:10: slots: \"4abc\" is not a whole number from 1 to 4096", ""},
           Case{"w0 slots=0", "h:1:10: slots: \"0\" is not a whole number from 1 to 4096",
                "to leave a host out, put '#' in front of its line"},
           Case{"w0 slots=-1", "h:1:10: slots: \"-1\" is not a whole number from 1 to 4096", ""},
           Case{"w0 slots=4097", "h:1:10: slots: \"4097\" is not a whole number from 1 to 4096", ""},
           Case{"w0 slots=4#x", "h:1:10: slots: \"4#x\" is not a whole number from 1 to 4096", "put a space before a comment"},
           Case{"w0#x slots=4", "h:1:3: \"#\" is not allowed in a host name", "put a space before a comment"},
           Case{"w0 port=0", "h:1:9: port: \"0\" is not a whole number from 1 to 65535", ""},
           Case{"w0 gpus=4 slots=4", "h:1:4: unknown key \"gpus\"", "write slots=N"},
           Case{"w0 Slots=4", "h:1:4: unknown key \"Slots\"", "did you mean slots?"},
           Case{"w0 slot=4", "h:1:4: unknown key \"slot\"", "did you mean slots?"},
           Case{"w0 color=4", "h:1:4: unknown key \"color\"", "known keys: slots, max_slots, port, user"},
           Case{"w0 slots=4 slots=4", "h:1:12: slots is given twice", "keep one of them"},
           Case{"w0 slots=4 max_slots=2", "h:1:1: slots=4 is more than max_slots=2", ""},
           Case{"w0:4", "h:1:3: \":4\" after the name is ambiguous: slots or a port", "write w0 slots=4 or w0 port=4"},
           Case{"w0,w1", "h:1:3: ',' is not allowed in a host name", "write one host per line"},
           Case{"slots=4", "h:1:6: \"=\" is not allowed in a host name", "write the host name first: <host> slots=<number>"},
           Case{"a@w0 user=b", "h:1:11: the user is given twice: a and b", "keep one of them"},
           Case{"w0 user=-x", "h:1:9: a user cannot start with '-'", ""},
           Case{"w0\n\nw0 slots=2", "h:3:1: host w0 is given twice (the first is h:1)", "write each host once, with the sum of its slots"},
           Case{"w[1-4]\nw3", "h:2:1: host w3 is given twice (the first is h:1)", "write each host once, with the sum of its slots"},
           Case{"", "h contains no hosts", "write one host per line: <host> slots=<number>"},
           Case{"\n# w0 slots=4\n", "h contains no hosts", "write one host per line: <host> slots=<number>"},
           Case{"\xff\xfew\0", "h is encoded in UTF-16", "save it as UTF-8"},
       }) {
    auto hosts = parse_hostfile(c.text, "h");
    ASSERT_FALSE(hosts.ok()) << c.text;
    EXPECT_EQ(hosts.error().kind, ErrorKind::kConfig);
    EXPECT_EQ(hosts.error().message, c.message) << c.text;
    EXPECT_EQ(hosts.error().hint, c.hint) << c.text;
  }
}

TEST(Hostfile, TheExampleOfItsPageIsRead) {
  std::string data = PHALANX_TEST_DATA;
  std::ifstream page(data.substr(0, data.rfind("/tests/data")) + "/docs/formats/hostfile.md");
  std::ostringstream text;
  text << page.rdbuf();
  std::string all = text.str();
  size_t begin = all.find("# DeepSpeed\n");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(file(all.substr(begin, all.find("```", begin) - begin)),
            "gpu01=8 gpu02=8 gpu03=4 gpu04 alice@gpu05=8 alice@gpu06=8 alice@gpu07=8 alice@gpu08=8 bob@10.0.0.9/2222 fd00::1=8");
}

TEST(Hostfile, Limits) {
  EXPECT_FALSE(parse_hostfile(std::string(kLargestHostfile + 1, '\n'), "h").ok());
  EXPECT_FALSE(parse_hostfile("w0 " + std::string(kLongestHostLine, ' '), "h").ok());
  std::string many;
  for (int i = 0; i < 65'536; ++i) many += "n" + std::to_string(i) + "\n";
  EXPECT_EQ(parse_hostfile(many, "h")->size(), kMostHosts);
  EXPECT_EQ(file(many + "one-more\n"), "error: h:65537:1: more than 65536 hosts");
}

TEST(Hostfile, OneAddressWithSeveralPortsGetsNamesThatDiffer) {
  auto hosts = parse_hostfile("127.0.0.1 port=2201\n127.0.0.1 port=2202\n::1 port=1\n::1 port=2\nw0 port=22", "h");
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->at(0).name, "127.0.0.1:2201");
  EXPECT_EQ(hosts->at(1).name, "127.0.0.1:2202");
  EXPECT_EQ(hosts->at(2).name, "[::1]:1");
  EXPECT_EQ(hosts->at(4).name, "w0");
  EXPECT_EQ(hosts->at(0).address, "127.0.0.1");
}

TEST(Hostfile, AMissingFileIsAnErrorNeverALocalRun) {
  auto hosts = read_hostfile("/nonexistent/hosts.txt");
  ASSERT_FALSE(hosts.ok());
  EXPECT_EQ(hosts.error().kind, ErrorKind::kConfig);
  EXPECT_NE(hosts.error().render().find("/nonexistent/hosts.txt"), std::string::npos);
  EXPECT_FALSE(read_hostfile("/").ok());
}

TEST(NodeList, IsNamesAndRangesOnly) {
  EXPECT_EQ(shown(parse_node_list("gpu[01-04,07],login1", "SLURM_JOB_NODELIST")), "gpu01 gpu02 gpu03 gpu04 gpu07 login1");
  EXPECT_EQ(shown(parse_node_list("a:4", "SLURM_JOB_NODELIST")), "error: SLURM_JOB_NODELIST, character 1: \"a:4\" is not a valid name");
  EXPECT_EQ(shown(parse_node_list("", "SLURM_JOB_NODELIST")), "error: SLURM_JOB_NODELIST names no host");
  EXPECT_EQ(parse_node_list("[", "X").error().kind, ErrorKind::kConfig);
}

TEST(HostList, WhatIsWrittenOutIsReadBack) {
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> names;
    std::string text;
    for (size_t n = 1 + random() % 8; n > 0; --n) {
      std::string name = std::string(1, "gnr"[random() % 3]) + std::to_string(random() % 300) + (random() % 4 ? "" : "-ib");
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    for (const std::string& word : base::fold_names(names)) text += word + ",";
    text.pop_back();
    auto hosts = parse_host_argument(text);
    ASSERT_TRUE(hosts.ok()) << text;
    ASSERT_EQ(hosts->size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(hosts->at(i).name, names[i]);
  }
}

TEST(HostList, RandomTextNeverCrashesAndNeverYieldsAnUnsafeName) {
  std::mt19937 random(13);
  const std::string_view pieces[] = {
      "a",  "01",   "[",          "]",     "-",       ",",       ":",    "@", "slots=",       "4",     " ", "\n",   "#", "=",
      "\t", "\r\n", "max_slots=", "[1-3]", "fd00::1", "port=22", "\xff", "é", "\xef\xbb\xbf", "user=", "%", "65537"};
  for (int round = 0; round < 30'000; ++round) {
    std::string text;
    for (size_t n = random() % 10; n > 0; --n) text += pieces[random() % std::size(pieces)];
    for (const auto& hosts : {parse_host_argument(text), parse_hostfile(text, "h"), parse_node_list(text, "L")}) {
      if (!hosts.ok()) continue;
      ASSERT_FALSE(hosts->empty());
      for (const HostSpec& host : *hosts) {
        ASSERT_NE(host.destination()[0], '-');
        ASSERT_EQ(host.destination().find_first_of(" \t\r\n#=,\""), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace phalanx::hosts
