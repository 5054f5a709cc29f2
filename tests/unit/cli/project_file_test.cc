// The project file: what it may say, and the place in every error.
#include "cli/project/project_file.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "cli/flags/env_file.h"

namespace phalanx::cli {
namespace {

std::string error(std::string_view text) {
  auto file = parse_project_file(text, "/p/phalanx.yaml");
  if (file.ok()) return "no error";
  EXPECT_EQ(file.error().kind, base::ErrorKind::kConfig);
  return file.error().message + (file.error().hint.empty() ? "" : " | " + file.error().hint);
}

// "hosts=gpu01,gpu02@2:8"
std::vector<std::string> values(std::string_view text) {
  auto file = parse_project_file(text, "/p/phalanx.yaml");
  EXPECT_TRUE(file.ok()) << file.error().message;
  std::vector<std::string> all;
  if (!file.ok()) return all;
  for (const ProjectValue& one : file->values) all.push_back(fmt::format("{}={}@{}:{}", one.flag->name, one.value, one.line, one.column));
  for (const ProjectVariable& one : file->env)
    all.push_back(fmt::format("env.{}={}@{}:{}", one.name, one.value.value_or("(here)"), one.line, one.column));
  return all;
}

using Words = std::vector<std::string>;

TEST(ProjectFile, EveryKindOfValue) {
  EXPECT_EQ(values("# the cluster\n"
                   "hosts: [gpu01:8, gpu02:8]\n"
                   "iface: bond0\n"
                   "nproc-per-node: 8\n"
                   "stall: 5m\n"
                   "python-hook: true\n"
                   "no-store: false\n"
                   "ssh-option:\n  - ProxyJump=bastion\n  - Port=2222\n"
                   "accept: [fs_shm_small, NET-LOSS@gpu01, NET-SLOW-LINK: [gpu01, 'gpu[02-03]']]\n"
                   "env:\n  NCCL_DEBUG: WARN\n  VERSION: 1.10\n  SWITCH: yes\n  EMPTY: ''\n  HF_TOKEN:\n"),
            (Words{"hosts=gpu01:8,gpu02:8@2:8", "iface=bond0@3:8", "nproc-per-node=8@4:17", "stall=5m@5:8", "python-hook=true@6:14",
                   "no-store=false@7:11", "ssh-option=ProxyJump=bastion@9:5", "ssh-option=Port=2222@10:5", "accept=fs_shm_small@11:10",
                   "accept=NET-LOSS@gpu01@11:24", "accept=NET-SLOW-LINK@gpu01,gpu[02-03]@11:40", "env.NCCL_DEBUG=WARN@13:3",
                   "env.VERSION=1.10@14:3", "env.SWITCH=yes@15:3", "env.EMPTY=@16:3", "env.HF_TOKEN=(here)@17:3"}));
  EXPECT_EQ(values(""), Words{});
  EXPECT_EQ(values("# nothing\n---\n"), Words{});
  EXPECT_EQ(values("\xef\xbb\xbfiface: eth0\r\n"), Words{"iface=eth0@1:8"});
  EXPECT_EQ(values("{iface: eth0}"), Words{"iface=eth0@1:9"});
}

TEST(ProjectFile, HostsAsWordListOrHostfile) {
  EXPECT_EQ(values("hosts: gpu[01-04]:8\n"), Words{"hosts=gpu[01-04]:8@1:8"});
  EXPECT_EQ(values("hosts:\n  - gpu[01-04]:8\n  - me@login\n"), Words{"hosts=gpu[01-04]:8,me@login@2:3"});
  EXPECT_EQ(values("hosts: ./hosts\n"), Words{"hostfile=./hosts@1:8"});
  EXPECT_EQ(values("hostfile: hosts.txt\n"), Words{"hostfile=hosts.txt@1:11"});
  EXPECT_EQ(values("gpus: gpu01:0,2@gpu02:1\n"), Words{"gpus=gpu01:0,2@gpu02:1@1:7"});
  EXPECT_EQ(values("gpus:\n  - gpu01:0,2\n  - gpu02:1\n"), Words{"gpus=gpu01:0,2@gpu02:1@2:3"});
  EXPECT_EQ(error("hosts: hosts.txt\n"), "/p/phalanx.yaml:1:8: hosts: \"hosts.txt\" looks like a file | write hosts: ./hosts.txt");
  EXPECT_EQ(error("hosts: ./hosts\nhostfile: x\n"), "/p/phalanx.yaml:2:11: hostfile is set already, on line 1 | keep one of them");
  EXPECT_EQ(error("hosts:\n  - gpu01: 8\n"),
            "/p/phalanx.yaml:2:5: an entry of hosts is a mapping, not one word | write HOST:SLOTS without a space after the colon");
  EXPECT_EQ(error("hosts: []\n"), "/p/phalanx.yaml:1:8: hosts is an empty list");
  EXPECT_EQ(error("hosts: gpu01:x\n").rfind("/p/phalanx.yaml:1:8: ", 0), 0u) << error("hosts: gpu01:x\n");
  EXPECT_EQ(error("spares: a:b:c\n").rfind("/p/phalanx.yaml:1:9: ", 0), 0u);
}

TEST(ProjectFile, UnknownKeysWithTheNearestName) {
  EXPECT_EQ(error("iface: eth0\nhost: gpu01\n"), "/p/phalanx.yaml:2:1: unknown key \"host\" | did you mean hosts?");
  EXPECT_EQ(error("nproc_per_node: 8\n"), "/p/phalanx.yaml:1:1: unknown key \"nproc_per_node\" | did you mean nproc-per-node?");
  EXPECT_EQ(error("num-gpus: 8\n"), "/p/phalanx.yaml:1:1: unknown key \"num-gpus\" | did you mean nproc-per-node?");
  EXPECT_EQ(error("Iface: x\n"), "/p/phalanx.yaml:1:1: unknown key \"Iface\" | did you mean iface?");
  EXPECT_EQ(error("colour-of-the-sky: blue\n"),
            "/p/phalanx.yaml:1:1: unknown key \"colour-of-the-sky\" | the keys are the long options of phalanx run: phalanx help run");
  EXPECT_EQ(error("dry-run: true\n"),
            "/p/phalanx.yaml:1:1: \"dry-run\" cannot be set in a project file | give it to the single command: --dry-run");
  for (const char* single : {"detach", "json", "quiet", "verbose", "help", "project", "no-project"})
    EXPECT_NE(error(fmt::format("{}: true\n", single)).find("cannot be set in a project file"), std::string::npos) << single;
  EXPECT_EQ(error("fail-on: note\n").rfind("/p/phalanx.yaml:1:1: unknown key", 0), 0u) << "an option of check alone";
}

TEST(ProjectFile, WrongTypesAndValues) {
  EXPECT_EQ(error("- hosts\n"),
            "/p/phalanx.yaml:1:1: the file is a list, not a mapping of options | write lines such as hosts: gpu01,gpu02");
  EXPECT_EQ(error("iface: [eth0]\n"), "/p/phalanx.yaml:1:8: iface takes one word, not a list");
  EXPECT_EQ(error("iface: {a: b}\n"), "/p/phalanx.yaml:1:8: iface takes one word, not a mapping");
  EXPECT_EQ(error("iface:\n"), "/p/phalanx.yaml:1:1: iface has no value | write a value after the colon, or remove the line");
  EXPECT_EQ(error("iface: ''\n"), "/p/phalanx.yaml:1:8: iface: the value is empty");
  EXPECT_EQ(error("ssh-option: [[a]]\n"), "/p/phalanx.yaml:1:14: an entry of ssh-option is a list, not one word");
  EXPECT_EQ(error("python-hook: 1\n"), "/p/phalanx.yaml:1:14: python-hook: \"1\" is neither true nor false");
  EXPECT_EQ(error("fold: sometimes\n"), "/p/phalanx.yaml:1:7: fold: \"sometimes\" is not one of auto, on, off");
  EXPECT_EQ(error("stall: soon\n").rfind("/p/phalanx.yaml:1:8: stall: ", 0), 0u);
  EXPECT_EQ(error("nnodes: 4:2\n"), "/p/phalanx.yaml:1:9: nnodes: 4 is more than 2 | write the smaller number first: nnodes 2:4");
  EXPECT_EQ(error("master-port: 70000\n").rfind("/p/phalanx.yaml:1:14: master-port: ", 0), 0u);
  EXPECT_EQ(error("iface: a\nfold: on\niface: b\n"), "/p/phalanx.yaml:3:1: \"iface\" is given twice");
  EXPECT_EQ(error("accept: FS-SHM-SMAL\n"),
            "/p/phalanx.yaml:1:9: unknown code \"FS-SHM-SMAL\" | did you mean FS-SHM-SMALL or FS-SHM-FULL?");
  EXPECT_EQ(error("accept:\n  - FS-SHM-SMALL\n  - NET-\n").rfind("/p/phalanx.yaml:3:5: unknown code \"NET-\"", 0), 0u) << "no prefixes";
  EXPECT_EQ(error("accept: [RANK-OOM]\n").rfind("/p/phalanx.yaml:1:10: ", 0), 0u);
  EXPECT_EQ(error("accept: {FS-SHM-SMALL: gpu01}\n"), "/p/phalanx.yaml:1:9: accept takes a list of codes, not a mapping");
  EXPECT_EQ(error("accept: [FS-SHM-SMALL: []]\n"),
            "/p/phalanx.yaml:1:10: the list of hosts is empty | write - CODE to accept it on every host");
  EXPECT_EQ(error("accept: [FS-SHM-SMALL: {a: b}]\n"), "/p/phalanx.yaml:1:28: a host of FS-SHM-SMALL is not one word");
  EXPECT_EQ(error("accept: [FS-SHM-SMALL: 'gpu[']\n").rfind("/p/phalanx.yaml:1:10: ", 0), 0u);
}

TEST(ProjectFile, Variables) {
  EXPECT_EQ(error("env: A=1\n"), "/p/phalanx.yaml:1:6: env is one word, not a mapping | write NAME: value, indented, one per line");
  EXPECT_EQ(error("env:\niface: x\n"), "/p/phalanx.yaml:1:1: env is nothing, not a mapping | write NAME: value, indented, one per line");
  EXPECT_EQ(error("env: [A=1]\n"), "/p/phalanx.yaml:1:6: env is a list, not a mapping | write NAME: value, indented, one per line");
  EXPECT_EQ(error("env:\n  A: [1]\n"), "/p/phalanx.yaml:2:6: the value of A is a list, not one word");
  EXPECT_EQ(error("env:\n  A-B: 1\n").rfind("/p/phalanx.yaml:2:3: \"A-B\" is not the name of a variable", 0), 0u);
  EXPECT_EQ(error("env:\n  A: 1\n  A: 2\n"), "/p/phalanx.yaml:3:3: \"A\" is given twice");
  EXPECT_EQ(error("env: {A: \"x\\0y\"}\n"), "/p/phalanx.yaml:1:10: the value contains a zero byte");
  EXPECT_EQ(error("env: {A: " + std::string(kLongestEnvValue + 1, 'x') + "}\n"),
            fmt::format("/p/phalanx.yaml:1:10: the value of A is longer than {} bytes", kLongestEnvValue));
}

TEST(ProjectFile, HostileText) {
  EXPECT_EQ(error(std::string("iface: x\nfold: \0on\n", 19)), "/p/phalanx.yaml:2: a zero byte: this is no text in UTF-8");
  EXPECT_EQ(error(std::string("\xff\xfei\0f\0", 6)).rfind("/p/phalanx.yaml:1: a zero byte", 0), 0u) << "UTF-16";
  EXPECT_EQ(error(std::string(kLargestProjectFile + 1, '#')), "/p/phalanx.yaml: YAML of 1048577 bytes is larger than the limit of 1048576");
  EXPECT_EQ(error("iface: " + std::string(100, '[') + std::string(100, ']')).rfind("/p/phalanx.yaml:1:15: nested deeper than 8 levels", 0),
            0u);
  EXPECT_NE(error(std::string(100'000, '[')), "no error");
  EXPECT_EQ(error("a: &a [x, x]\nb: &b [*a, *a]\n"), "/p/phalanx.yaml:1:4: anchors (&name) are not supported here");
  EXPECT_EQ(error("a: *b\n").rfind("/p/phalanx.yaml:1:4: ", 0), 0u) << error("a: *b\n");
  EXPECT_EQ(error("env:\n  <<: {A: 1}\n"), "/p/phalanx.yaml:2:3: merge keys (<<) are not supported here");
  EXPECT_EQ(error("iface: !!python/object:os.system x\n").rfind("/p/phalanx.yaml:1:8: tags (!name) are not supported here", 0), 0u)
      << error("iface: !!python/object:os.system x\n");
  EXPECT_EQ(error("? [a, b]\n: 1\n").rfind("/p/phalanx.yaml:1:3: a key must be one word", 0), 0u);
  EXPECT_EQ(error("iface: a\n---\niface: b\n"), "/p/phalanx.yaml: there is a second document (after '---'); one is expected");
  for (const char* open : {"'x\nhosts: gpu01\n", "\"x\\\"\nhosts: gpu01\n", "'it''s\n"})
    EXPECT_EQ(error(std::string("iface: ") + open), "/p/phalanx.yaml:1:8: the quote is not closed") << open;
  EXPECT_EQ(values("env: {A: 'it''s', B: \"a\\\"b\", C: \"\xe4\xb8\xad\", D: '\xe4\xb8\xad'}\n").size(), 4u);
  EXPECT_EQ(error("iface: a\nname: \xff\n"), "/p/phalanx.yaml:2: this is no text in UTF-8");
  EXPECT_EQ(error("iface: a\n\tfold: on\n").rfind("/p/phalanx.yaml:2:", 0), 0u) << error("iface: a\n\tfold: on\n");
  std::string many = "ssh-option: [";
  for (int i = 0; i < 100'001; ++i) many += "a,";
  EXPECT_NE(error(many + "a]").find("more than 100000 values"), std::string::npos);
  EXPECT_EQ(error("\x1b[31m: x\n").find('\x1b'), std::string::npos) << "nothing that a terminal obeys is shown";
}

}  // namespace
}  // namespace phalanx::cli
