// What `phalanx env` passes on is what phalanx-env reads.
#include "cli/push/env_program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/flags/verbs.h"
#include "envcli/request.h"
#include "os/capture.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

base::Result<envcli::Request> passed_to_env(const Words& words) {
  base::Result<Invocation> invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok()) << invocation.error().render();
  return envcli::read_request(env_program_arguments(*invocation));
}

TEST(EnvProgram, GetsTheFlagsAndTheEnvironment) {
  auto request =
      passed_to_env({"env", "rehome", "/data/my envs/-llm", "--dry-run", "--old-prefix", "/a=b", "--old-prefix=/c d", "--partial"});
  ASSERT_TRUE(request.ok()) << request.error().render();
  EXPECT_EQ(request->verb, "rehome");
  EXPECT_EQ(request->environment, "/data/my envs/-llm");
  EXPECT_EQ(request->old_prefixes, (Words{"/a=b", "/c d"}));
  EXPECT_TRUE(request->dry_run && request->partial && !request->json);

  request = passed_to_env({"env", "--json", "show", "--", "-llm"});
  ASSERT_TRUE(request.ok()) << request.error().render();
  EXPECT_EQ(request->environment, "-llm");
  EXPECT_TRUE(request->json && !request->dry_run && !request->partial && request->old_prefixes.empty());
}

TEST(EnvProgram, KnowsEveryFlagThatTheTableGivesTheVerb) {
  for (const FlagRow& row : flag_table()) {
    if (!(row.verbs & bit(Verb::kEnv)) || row.flag == Flag::kHelp) continue;
    Invocation invocation;
    invocation.flags.push_back({&row, "", row.kind == ValueKind::kNone ? "" : "/x"});
    invocation.operands = {"show", "llm"};
    // What is about hosts is the launcher's own.
    if (env_program_arguments(invocation).size() == 3) continue;
    auto request = envcli::read_request(env_program_arguments(invocation));
    EXPECT_TRUE(request.ok()) << row.name << ": " << request.error().render();
  }
}

TEST(EnvProgram, PassesOnWhatIsPackedWhere) {
  auto request = passed_to_env({"env", "pack", "llm", "-o", "/tmp/a b.tar.zst"});
  ASSERT_TRUE(request.ok()) << request.error().render();
  EXPECT_EQ(request->verb, "pack");
  EXPECT_EQ(request->output, "/tmp/a b.tar.zst");
  request = passed_to_env({"env", "unpack", "a.tar.zst", "/data/llm"});
  ASSERT_TRUE(request.ok()) << request.error().render();
  EXPECT_EQ(request->environment, "a.tar.zst");
  EXPECT_EQ(request->place, "/data/llm");
}

TEST(EnvProgram, HostsStandBehindTheEnvironment) {
  for (const Words& words : std::vector<Words>{
           {"env", "push", "llm", "gpu01,gpu02"}, {"env", "push", "llm", "-H", "gpu01,gpu02"}, {"env", "diff", "llm", "gpu01", "gpu02"}}) {
    base::Result<Invocation> invocation = parse_command_line(words);
    ASSERT_TRUE(invocation.ok());
    base::Result<RunOptions> options = run_options(*invocation);
    ASSERT_TRUE(options.ok()) << options.error().render();
    EXPECT_EQ(options->hosts, "gpu01,gpu02");
  }
  base::Result<Invocation> local = parse_command_line(Words{"env", "show", "llm", "--to", "/x"});
  ASSERT_TRUE(local.ok());
  base::Result<int> refused = env_verb(*local);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--to"), std::string::npos);
}

TEST(EnvProgram, RefusesWhatItDoesNotKnow) {
  for (const Words& words : std::vector<Words>{{},
                                               {"--"},
                                               {"eat", "llm"},
                                               {"show"},
                                               {"unpack", "a.tar.zst"},
                                               {"pack", "a", "b"},
                                               {"show", "a", "b"},
                                               {"--colour", "show", "a"},
                                               {"--old-prefix", "show", "a"},
                                               {"--json=1", "show", "a"},
                                               {"-j", "show", "a"}}) {
    auto request = envcli::read_request(words);
    ASSERT_FALSE(request.ok());
    EXPECT_EQ(request.error().kind, base::ErrorKind::kUsage);
    EXPECT_FALSE(request.error().hint.empty());
  }
}

// Another user of one host may have a program at the path that another host has named.
TEST(EnvProgram, AHostStartsNothingAtAPathThatAnotherHasNamed) {
  const std::filesystem::path folder = scratch::folder("env-program-test");
  for (const char* name : {"one", "two"}) {
    std::filesystem::create_directories(folder / name);
    const std::filesystem::path program = folder / name / "phalanx-env";
    std::ofstream(program) << "#!/bin/sh\necho " << name << " \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms(0700));
  }
  std::vector<job::CopiedHost> hosts(4);
  hosts[0].path = hosts[2].path = folder / "one";
  hosts[1].path = folder / "two";
  hosts[3].path = folder / "none";
  auto said = [&](const std::string& rank) {
    os::CaptureSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"sh", "-c", script_of(hosts, {"verify", "a b"})};
    spec.environment = {"PATH=/usr/bin:/bin", "NODE_RANK=" + rank};
    return os::capture(spec).output;
  };
  EXPECT_EQ(said("0"), "one verify a b\n");
  EXPECT_EQ(said("1"), "two verify a b\n");
  EXPECT_EQ(said("2"), "one verify a b\n");
  EXPECT_EQ(said("3"), "") << "its own store has no program";
  EXPECT_EQ(said("4"), "");
}

}  // namespace
}  // namespace phalanx::cli
