// Which node a pod is: the variables of Kubernetes, of a PyTorchJob and of a TrainJob.
#include "cli/by_hand/pod_place.h"

#include <gtest/gtest.h>

#include <map>

namespace phalanx::cli {
namespace {

using PodVariables = std::map<std::string, std::string>;

base::Result<RunOptions> in_pod(const PodVariables& variables, std::vector<std::string> words = {}, const std::string& hostname = "train-2",
                                const std::string& hosts = "") {
  Pod pod{[&](const char* name) {
            auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
          },
          hostname, hosts};
  words.insert(words.begin(), "run");
  words.insert(words.end(), {"--", "python", "train.py"});
  base::Result<Invocation> invocation = parse_command_line(words);
  EXPECT_TRUE(invocation.ok());
  return run_options(*invocation, &pod);
}

PodVariables with(PodVariables more) {
  more["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  return more;
}

// As the operator writes them: RANK and WORLD_SIZE count pods.
TEST(PodPlace, APodOfAPyTorchJob) {
  const PodVariables early = with({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "llm-master-0"}, {"MASTER_PORT", "23456"}});
  base::Result<RunOptions> options = in_pod(early);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_TRUE(options->in_pod);
  EXPECT_EQ(options->node_rank, 2);
  EXPECT_EQ(options->nnodes, 4);
  EXPECT_EQ(options->master_addr, "llm-master-0");
  EXPECT_EQ(options->master_port, 23456);
  EXPECT_FALSE(options->ranks_per_host);
  // Later ones count processes in WORLD_SIZE, and have the variables of torchrun.
  PodVariables later = early;
  later["WORLD_SIZE"] = "32";
  later.insert({{"PET_NNODES", "4"}, {"PET_NODE_RANK", "2"}, {"PET_NPROC_PER_NODE", "8"}});
  options = in_pod(later);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->nnodes, 4);
  ASSERT_TRUE(options->ranks_per_host);
  EXPECT_EQ(options->ranks_per_host->count, 8);
  // What is typed wins.
  options = in_pod(later, {"--nproc-per-node", "2", "--master-port", "1234", "--nnodes", "3", "--master-addr", "10.0.0.1"});
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->ranks_per_host->count, 2);
  EXPECT_EQ(options->master_port, 1234);
  EXPECT_EQ(options->nnodes, 3);
  EXPECT_EQ(options->master_addr, "10.0.0.1");
}

TEST(PodPlace, TheMasterOfAnEarlyPyTorchJobIsCalledLocalhost) {
  base::Result<RunOptions> options =
      in_pod(with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "23456"}}), {}, "llm-master-0");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->master_addr, "llm-master-0");
}

TEST(PodPlace, APodOfATrainJob) {
  base::Result<RunOptions> options = in_pod(with({{"PET_NNODES", "2"},
                                                  {"PET_NPROC_PER_NODE", "auto"},
                                                  {"PET_NODE_RANK", "1"},
                                                  {"JOB_COMPLETION_INDEX", "1"},
                                                  {"PET_MASTER_ADDR", "llm-node-0-0.llm"},
                                                  {"PET_MASTER_PORT", "29400"}}));
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->node_rank, 1);
  EXPECT_EQ(options->master_addr, "llm-node-0-0.llm");
  EXPECT_EQ(options->master_port, 29400);
  EXPECT_EQ(options->ranks_per_host->kind, RanksPerHost::Kind::kAuto);
}

// The kubelet writes the name with its domain into /etc/hosts where the pod has a subdomain.
TEST(PodPlace, APodOfAnIndexedJobFindsTheFirstPodByItsOwnName) {
  const PodVariables index = with({{"JOB_COMPLETION_INDEX", "2"}});
  const std::string hosts =
      "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n10.2.0.7\ttrain-2.llm.default.svc.cluster.local\ttrain-2\n";
  base::Result<RunOptions> options = in_pod(index, {"--nnodes", "4"}, "train-2", hosts);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->node_rank, 2);
  EXPECT_EQ(options->master_addr, "train-0.llm.default.svc.cluster.local");
  // Of a JobSet the names are longer, and end in the index as well.
  options = in_pod(index, {"--nnodes", "4"}, "set-workers-0-2", "10.2.0.7 set-workers-0-2.set.ns.svc.cluster.local set-workers-0-2\n");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->master_addr, "set-workers-0-0.set.ns.svc.cluster.local");
  for (const std::string& without : {std::string(), std::string("10.2.0.7 train-2\n"), std::string("10.2.0.7 train-21.llm train-21\n")}) {
    options = in_pod(index, {"--nnodes", "4"}, "train-2", without);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().message, "this pod is node 2 of 4, but the address of node 0 is unknown");
  }
}

// An Indexed Job may be many jobs that have nothing to do with each other.
TEST(PodPlace, ChangesNothingElsewhere) {
  const PodVariables torch = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}};
  for (const auto& options : {in_pod(torch), in_pod(with({{"JOB_COMPLETION_INDEX", "2"}})), in_pod(with({})),
                              in_pod(with({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}})), in_pod(with({{"WORLD_SIZE", "2"}})),
                              in_pod(with(torch), {"-H", "a,b"}), in_pod(with(torch), {"--nnodes", "1"})}) {
    ASSERT_TRUE(options.ok()) << options.error().message;
    EXPECT_FALSE(options->in_pod);
    EXPECT_FALSE(options->node_rank);
  }
}

TEST(PodPlace, WhatCannotBeReadIsAnErrorThatNamesTheVariable) {
  for (const auto& [name, value] : PodVariables{
           {"PET_NODE_RANK", "x"}, {"PET_NNODES", "99999999999999999999"}, {"PET_MASTER_PORT", "0"}, {"PET_NPROC_PER_NODE", "-1"}}) {
    PodVariables variables = with({{"PET_NODE_RANK", "1"}, {"PET_NNODES", "2"}, {"PET_MASTER_ADDR", "a"}});
    variables[name] = value;
    base::Result<RunOptions> options = in_pod(variables);
    ASSERT_FALSE(options.ok()) << name;
    EXPECT_NE(options.error().message.find(name), std::string::npos) << options.error().message;
    EXPECT_EQ(base::exit_code(options.error().kind), 2);
  }
  base::Result<RunOptions> elastic = in_pod(with({{"PET_NNODES", "1:4"}, {"PET_NODE_RANK", "1"}}));
  ASSERT_FALSE(elastic.ok());
  EXPECT_EQ(elastic.error().message, "PET_NNODES=1:4: pods start with a fixed number of nodes");
  base::Result<RunOptions> beyond = in_pod(with({{"PET_NNODES", "2"}, {"PET_NODE_RANK", "2"}, {"PET_MASTER_ADDR", "a"}}));
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().message, "--node-rank 2: with --nnodes 2 the highest is 1");
}

}  // namespace
}  // namespace phalanx::cli
