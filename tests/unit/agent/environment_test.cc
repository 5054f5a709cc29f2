#include "agent/ranks/environment.h"

#include <gtest/gtest.h>

namespace phalanx::agent {
namespace {

TEST(Environment, StaleNamesGoAndTheJobsComeIn) {
  const char* block[] = {"PATH=/bin", "RANK=7", "OMPI_COMM_WORLD_RANK=3", "HOME=/h", "=bad", "noequals", "HOME=/second", nullptr};
  wire::JobSpec job;
  job.unset = {"RANK", "OMPI_*"};
  job.set = {{"A", "1"}, {"A", "2"}};
  job.path_prefix = "/env/bin";
  Environment env = job_environment(parse_environment(block), job, true);
  EXPECT_EQ(env.count("RANK"), 0u);
  EXPECT_EQ(env.count("OMPI_COMM_WORLD_RANK"), 0u);
  EXPECT_EQ(env["HOME"], "/h");
  EXPECT_EQ(env["A"], "2") << "the last of a name counts";
  EXPECT_EQ(env["PATH"], "/env/bin:/bin");
  EXPECT_EQ(job_environment(parse_environment(block), job, false)["PATH"], "/bin") << "a folder the host does not have is left out";
  EXPECT_FALSE(job_environment({}, {}, false)["PATH"].empty());
}

TEST(Environment, DefaultsYieldToTheUserAndTheRankBlockToNobody) {
  Environment job{{"OMP_NUM_THREADS", "5"}, {"RANK", "99"}};
  wire::RankSpec spec{3, 1, {{"RANK", "3"}}};
  RankPlace place;
  place.cpus = 8;
  place.local_world = 2;
  place.event_fd = 3;
  place.error_file = "/tmp/e.json";
  Environment env = rank_environment(job, spec, place);
  EXPECT_EQ(env["OMP_NUM_THREADS"], "5");
  EXPECT_EQ(env["RANK"], "3");
  EXPECT_EQ(env["PHALANX_EVENT_FD"], "3");
  EXPECT_EQ(env["TORCHELASTIC_ERROR_FILE"], "/tmp/e.json");
  EXPECT_EQ(env["PYTHONUNBUFFERED"], "1");
  EXPECT_EQ(rank_environment({}, spec, place)["OMP_NUM_THREADS"], "4");
  place.local_world = 64;
  EXPECT_EQ(rank_environment({}, spec, place)["OMP_NUM_THREADS"], "1");
}

TEST(RankArguments, TheMacroIsReplacedOnlyWhereItIsAskedFor) {
  wire::JobSpec job;
  job.argv = {"python", "train.py", "--local_rank=${local_rank}", "cuda:${local_rank},${local_rank}", "$local_rank", "${LOCAL_RANK}"};
  EXPECT_EQ(rank_arguments(job, 3), job.argv);
  job.local_rank_macro = true;
  EXPECT_EQ(rank_arguments(job, 3),
            (std::vector<std::string>{"python", "train.py", "--local_rank=3", "cuda:3,3", "$local_rank", "${LOCAL_RANK}"}));
}

}  // namespace
}  // namespace phalanx::agent
