#include "cli/make_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "cli/passed_on.h"
#include "logs/passed_values.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

// This machine, with these variables ("K=V", null at the end).
Here machine(const char* const* environment = nullptr) {
  Here here;
  here.hostname = "h0";
  here.folder = "/";
  here.environment = environment;
  return here;
}

// Each file is within its own limit, and one host would be sent all of them in one frame.
TEST(MakeJob, VariablesThatTogetherAreTooMuchAreAUsageError) {
  RunOptions options;
  options.command = {"true"};
  std::string folder = scratch::folder("env");
  for (int file = 0; file < 5; ++file) {
    std::string text;
    for (int i = 0; i < 31; ++i) text += fmt::format("BIG_{}_{}={}\n", file, i, std::string(130'000, 'x'));
    options.env_files.push_back(fmt::format("{}/{}.env", folder, file));
    ASSERT_TRUE(os::write_file_atomic(options.env_files.back(), text).ok());
  }
  const Here here = machine();
  base::Result<job::Job> job = make_job(options, here);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().kind, base::ErrorKind::kUsage);
  EXPECT_EQ(base::exit_code(job.error().kind), 2);
  EXPECT_NE(job.error().message.find("at most 8 MiB can be passed on"), std::string::npos) << job.error().message;
  EXPECT_NE(job.error().cause.find("/4.env"), std::string::npos);
  options.env_files.resize(2);
  EXPECT_TRUE(make_job(options, here).ok());
}

TEST(MakeJob, WhatTravelsWithoutBeingAskedForIsKnownByName) {
  const char* environment[] = {"HF_TOKEN=secret", "MY_OWN=1", "VIRTUAL_ENV=/venv", "WANDB_MODE=offline", nullptr};
  const Here here = machine(environment);
  RunOptions options;
  options.command = {"true"};
  options.export_globs = {"MY_*"};
  std::vector<std::string> names = make_job(options, here)->exported;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"HF_TOKEN", "VIRTUAL_ENV", "WANDB_MODE"}));
  options.no_export = true;
  EXPECT_TRUE(make_job(options, here)->exported.empty());
}

// One line per name, with the origin of the value that the ranks get.
TEST(MakeJob, TheOriginOfEveryVariableIsKnown) {
  const char* environment[] = {"HF_TOKEN=secret", "HF_HOME=/data", "MY_OWN=1", "VIRTUAL_ENV=/venv", nullptr};
  const Here here = machine(environment);
  const std::string file = scratch::folder("origins") + "/job.env";
  ASSERT_TRUE(os::write_file_atomic(file, "HF_HOME=/other\nFROM_FILE=1\n").ok());
  RunOptions options;
  options.command = {"true"};
  options.export_globs = {"MY_*"};
  options.env_files = {file};
  options.env = {{"GIVEN", "verysecret"}};
  options.python_hook = true;
  base::Result<job::Job> job = make_job(options, here);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->set.size(), job->origins.size());
  std::string all;
  for (const PassedOn& one : passed_on(*job)) all += one.name + " " + one.from + "\n";
  EXPECT_EQ(all, "FROM_FILE --env-file " + file + "\nGIVEN --env\nHF_HOME --env-file " + file +
                     "\nHF_TOKEN this machine\nMY_OWN --export\nPHALANX_PYTHON_HOOK --python-hook\nVIRTUAL_ENV Python environment\n");
  EXPECT_EQ(base::to_text(describe_passed_on(*job)).find("secret"), std::string::npos) << "names only";
}

// The checks and the choice of GPUs read what the ranks will get.
TEST(MakeJob, OfSeveralValuesForOneNameTheLastIsLeft) {
  const char* environment[] = {"NCCL_SOCKET_IFNAME=eth9", "NCCL_DEBUG=INFO", nullptr};
  const Here here = machine(environment);
  const std::string file = scratch::folder("twice") + "/job.env";
  ASSERT_TRUE(os::write_file_atomic(file, "CUDA_VISIBLE_DEVICES=0,1\n").ok());
  RunOptions options;
  options.command = {"true"};
  options.env_files = {file};
  options.env = {{"CUDA_VISIBLE_DEVICES", "2,3"}, {"NCCL_SOCKET_IFNAME", "eth1"}, {"NCCL_SOCKET_IFNAME", "eth0"}};
  base::Result<job::Job> job = make_job(options, here);
  ASSERT_TRUE(job.ok());
  std::string all;
  for (size_t i = 0; i < job->set.size(); ++i) all += fmt::format("{}={} {}\n", job->set[i].first, job->set[i].second, job->origins[i]);
  EXPECT_EQ(all, "NCCL_DEBUG=INFO this machine\nCUDA_VISIBLE_DEVICES=2,3 --env\nNCCL_SOCKET_IFNAME=eth0 --env\n");
}

TEST(MakeJob, GpusAreHiddenByTheUsersWordAndNotByWhatThisMachineHas) {
  const char* environment[] = {"ACCELERATE_USE_CPU=1", nullptr};
  const Here here = machine(environment);
  RunOptions options;
  options.command = {"true"};
  EXPECT_FALSE(make_job(options, here)->hides_gpus);
  for (const auto& [name, value] :
       {std::pair{"CUDA_VISIBLE_DEVICES", ""}, {"CUDA_VISIBLE_DEVICES", "-1"}, {"ACCELERATE_USE_CPU", "True"}}) {
    options.env = {{name, value}};
    EXPECT_TRUE(make_job(options, here)->hides_gpus) << name << "=" << value;
  }
  options.env = {{"CUDA_VISIBLE_DEVICES", "0"}};
  EXPECT_FALSE(make_job(options, here)->hides_gpus);
}

TEST(MakeJob, ASlotIsExcludedOnlyWhereTheirNumberIsKnown) {
  const Here here = machine();
  RunOptions options;
  options.command = {"true"};
  options.hosts = "h1,h2";
  options.exclude = "h1:0";
  const base::Result<job::Job> refused = make_job(options, here);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, base::ErrorKind::kUsage);
  EXPECT_NE(refused.error().message.find("gives h1 no number of slots"), std::string::npos) << refused.error().message;
  options.hosts = "h1:4,h2:4";
  EXPECT_EQ(make_job(options, here)->hosts.at(0).selected, (std::vector<int>{1, 2, 3}));
}

// What a report needs to find the secrets that were passed on tells none of them.
TEST(MakeJob, MasksKnowSecretsAndDoNotTellThem) {
  job::Job job;
  job.set = {{"WANDB_API_KEY", "topsecret"}, {"HF_TOKEN", "hf_abc"}, {"HF_HOME", "/data/models"}};
  base::Result<std::string> masks = masks_of(job);
  ASSERT_TRUE(masks.ok());
  EXPECT_EQ(masks->find("topsecret"), std::string::npos);
  logs::PassedValues values = logs::PassedValues::read(*masks);
  size_t found = 0;
  EXPECT_EQ(values.mask("key topsecret, (hf_abc) in /data/models; topsecrets", &found),
            "key [redacted], ([redacted]) in /data/models; topsecrets");
  EXPECT_EQ(found, 2u);
  EXPECT_NE(*masks, *masks_of(job)) << "each run has a key of its own";
  job.set = {{"HF_HOME", "/data/models"}};
  EXPECT_EQ(*masks_of(job), "");
}

// A spare must not shrink the job: it takes the place of a host, with as many ranks.
TEST(MakeJob, ASpareWithoutSlotsHasThoseOfTheHosts) {
  Here here;
  here.hostname = "ctl";
  here.folder = "/";
  auto spare_of = [&](const std::string& hosts, const std::string& spares, const std::string& include = "") {
    RunOptions options;
    options.command = {"true"};
    options.hosts = hosts;
    options.spares = spares;
    options.include = include;
    return make_job(options, here);
  };
  EXPECT_EQ(spare_of("h1:2,h2:2", "h3")->spares.at(0).slots, 2);
  EXPECT_EQ(spare_of("h1:2,h2:2", "h3:1")->spares.at(0).slots, 1) << "as written";
  EXPECT_EQ(spare_of("h1,h2", "h3")->spares.at(0).slots, std::nullopt) << "one per GPU, as on the hosts";
  EXPECT_EQ(spare_of("h1:4,h2:4", "h3", "h1:0,2@h2:1,3")->spares.at(0).slots, 2) << "as many as the filter leaves";
  EXPECT_EQ(spare_of("h1:2,h2:4", "h3:4")->spares.at(0).slots, 4);
  base::Result<job::Job> unclear = spare_of("h1:2,h2:4", "h3");
  ASSERT_FALSE(unclear.ok());
  EXPECT_EQ(unclear.error().kind, base::ErrorKind::kUsage);
  EXPECT_EQ(unclear.error().cause, "the hosts are h1:2, h2:4");
  EXPECT_NE(unclear.error().hint.find("--spares h3:N"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::cli
