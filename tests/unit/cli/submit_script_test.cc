#include "cli/submit_script.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace phalanx::cli {
namespace {

Submission submission(std::vector<std::string> command) {
  Submission out;
  out.nodes = 4;
  out.command = std::move(command);
  out.program = "/opt/it's here/phalanx";
  out.directory = "/home/me/my project";
  return out;
}

TEST(SubmitScript, RunsTheCommandOnAllNodesOfTheJob) {
  Submission job = submission({"python", "train.py", "--note", "two words"});
  job.options = {"time=24:00:00", "exclusive", "comment=for Ann"};
  job.name = "llm";
  EXPECT_EQ(job_script(job).value(),
            "#!/bin/bash\n#SBATCH --job-name=llm\n#SBATCH --nodes=4\n#SBATCH --time=24:00:00\n#SBATCH --exclusive\n"
            "#SBATCH --comment=\"for Ann\"\n#SBATCH --no-requeue\n\ncd '/home/me/my project' || exit\n"
            "phalanx='/opt/it'\\''s here/phalanx'\nif ! [ -x \"$phalanx\" ]; then phalanx=phalanx; fi\n"
            "exec \"$phalanx\" run -- python train.py --note 'two words'\n");
}

TEST(SubmitScript, AWholeLineOfPhalanxKeepsItsOptions) {
  const std::string script = job_script(submission({"phalanx", "run", "--nnodes", "3:3", "--", "python", "a.py"})).value();
  EXPECT_NE(script.find("exec \"$phalanx\" run --nnodes 3:3 -- python a.py\n"), std::string::npos) << script;
  Submission job = submission({"/usr/bin/phalanx", "train", "gpt.yaml"});
  job.requeue = true;
  const std::string requeued = job_script(job).value();
  EXPECT_NE(requeued.find("#SBATCH --signal=B:USR1@120\n"), std::string::npos) << requeued;
  EXPECT_NE(requeued.find("\"$phalanx\" train --grace 100s gpt.yaml &\n"), std::string::npos) << requeued;
  job.command = {"phalanx", "run", "--grace", "5s", "--", "a"};
  EXPECT_NE(job_script(job).value().find("\"$phalanx\" run --grace 5s -- a &\n"), std::string::npos);
}

TEST(SubmitScript, TimeForACheckpointIsGivenOnceWhereverTheWordStands) {
  Submission job = submission({"phalanx", "run", "--grace=300s", "--", "a"});
  job.requeue = true;
  EXPECT_NE(job_script(job).value().find("\"$phalanx\" run --grace=300s -- a &\n"), std::string::npos) << job_script(job).value();
  job.command = {"python", "a.py", "--grace", "5"};  // the program's own
  EXPECT_NE(job_script(job).value().find("\"$phalanx\" run --grace 100s -- python a.py --grace 5 &\n"), std::string::npos)
      << job_script(job).value();
}

// The script is bash whatever the command holds.
TEST(SubmitScript, BashReadsIt) {
  for (bool requeue : {false, true}) {
    Submission job = submission({"sh", "-c", "echo '$x' \"`y`\" \\ # {line}"});
    job.requeue = requeue;
    FILE* bash = ::popen("bash -n", "w");
    ASSERT_NE(bash, nullptr);
    std::fputs(job_script(job).value().c_str(), bash);
    EXPECT_EQ(::pclose(bash), 0);
  }
}

TEST(SubmitScript, OptionsThatWouldChangeTheScriptAreRefused) {
  for (const char* option : {"", "--time=1", "time limit=3", "TIME=3", "nodes=3", "array=0-3", "wrap=ls", "requeue", "signal=USR2",
                             "chdir=/", "comment=\"x", "comment=a\nrm", "comment=a#b", "comment=\\", "comment='x'"}) {
    Submission job = submission({"true"});
    job.options = {option};
    base::Result<std::string> script = job_script(job);
    ASSERT_FALSE(script.ok()) << option;
    EXPECT_EQ(script.error().kind, base::ErrorKind::kUsage) << option;
  }
}

}  // namespace
}  // namespace phalanx::cli
