#include "hosts/lists/allocation.h"

#include <gtest/gtest.h>

#include <map>

#include "hosts/connect/slurm.h"

namespace phalanx::hosts {
namespace {

using Variables = std::map<std::string, std::string>;

base::Result<std::optional<Allocation>> read(const Variables& variables) {
  return slurm_allocation([&](const char* name) {
    auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

// "h1=2 h2" of a job, "none", or the error.
std::string shown(const Variables& variables) {
  base::Result<std::optional<Allocation>> result = read(variables);
  if (!result.ok()) return "error: " + result.error().message;
  if (!*result) return "none";
  std::string out = (*result)->job + ":";
  for (const HostSpec& host : (*result)->hosts) out += " " + host.name + (host.slots ? "=" + std::to_string(*host.slots) : "");
  return out;
}

TEST(Allocation, IsReadAsSbatchAndSallocTellIt) {
  EXPECT_EQ(shown({}), "none");
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}}), "none");
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-3]"}, {"SLURM_TASKS_PER_NODE", "1(x3)"}}), "7: h1 h2 h3");
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_NODELIST", "h1,gpu[08-09]"}, {"SLURM_TASKS_PER_NODE", "8(x2),1"}}),
            "7: h1=8 gpu08=8 gpu09=1");
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "4"}}), "7: h1=4");
  // An interactive shell is a step with one task; its variables tell the tasks of the step.
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"},
                   {"SLURM_JOB_NODELIST", "h[1-2]"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "1"},
                   {"SLURM_TASKS_PER_NODE", "1"}}),
            "7: h1 h2");
}

TEST(Allocation, WhatSlurmDoesNotWriteIsAnError) {
  for (const char* tasks : {"2", "2(x3)", "2(x", "(x2)", "2(x0)", "2(x2),", "-1,1", "9999,1", "2(x99999999999999999999)", "2)x2("})
    EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_TASKS_PER_NODE", tasks}})
                  .find("error: SLURM_TASKS_PER_NODE"),
              0U)
        << tasks;
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7;rm"}, {"SLURM_JOB_NODELIST", "h1"}}).find("error: SLURM_JOB_ID"), 0U);
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-"}}).find("error: SLURM_JOB_NODELIST"), 0U);
  EXPECT_EQ(shown({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-99999999]"}}).find("error: "), 0U);
}

TEST(Allocation, OneOfSeveralTasksIsRefused) {
  base::Result<std::optional<Allocation>> result =
      read({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, base::ErrorKind::kUsage);
}

TEST(SlurmTransport, NamesWhatSrunSaid) {
  SlurmTransport transport({.build = "abc"});
  const Target target{.name = "h2", .destination = "h2", .slurm_job = "7"};
  Launch launch = transport.launch(target, 0);
  EXPECT_TRUE(launch.deploys);
  EXPECT_EQ(launch.argv[1], "--jobid=7");
  EXPECT_EQ(launch.argv[2], "--nodelist=h2");
  base::Error error = transport.explain(target, {256, "srun: error: Unable to confirm allocation for job 7: Invalid job id specified\n"});
  EXPECT_EQ(error.message, "h2: its Slurm job has ended");
  EXPECT_EQ(error.hint, "squeue -j 7");
  error =
      transport.explain(target, {256, "slurmstepd-h2: error: *** STEP 7.0 ON h2 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"});
  EXPECT_EQ(error.message, "h2: the time limit of the Slurm job ended it");
  error = transport.explain(target, {256, ""});
  EXPECT_EQ(error.message, "h2: the agent could not be started with srun (exit code 1)");
  EXPECT_EQ(error.hint, "srun --jobid=7 --overlap -N1 -n1 -w h2 true");
  EXPECT_TRUE(transport.may_retry({256, "srun: error: Unable to create step for job 7: Socket timed out on send/recv operation\n"}));
}

TEST(Typed, IsTheLineForTheTransport) {
  EXPECT_EQ(typed({.name = "h1"}, "df -h ~/.cache"), "df -h ~/.cache");
  EXPECT_EQ(typed({.name = "h1", .destination = "me@h1"}, "nvidia-smi -L"), "ssh me@h1 nvidia-smi -L");
  EXPECT_EQ(typed({.name = "h1", .destination = "h1"}, "df -h ~/.cache"), "ssh h1 'df -h ~/.cache'");
  EXPECT_EQ(typed({.name = "h1", .destination = "h1", .slurm_job = "7"}, "df -h ~/.cache"),
            "srun --jobid=7 --overlap -N1 -n1 -w h1 sh -c 'df -h ~/.cache'");
}

}  // namespace
}  // namespace phalanx::hosts
