#include "cli/make_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "os/files.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

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
  Here here;
  here.hostname = "h1";
  here.folder = "/";
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
  Here here;
  here.hostname = "h1";
  here.folder = "/";
  here.environment = environment;
  RunOptions options;
  options.command = {"true"};
  options.export_globs = {"MY_*"};
  std::vector<std::string> names = make_job(options, here)->exported;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"HF_TOKEN", "VIRTUAL_ENV", "WANDB_MODE"}));
  options.no_export = true;
  EXPECT_TRUE(make_job(options, here)->exported.empty());
}

}  // namespace
}  // namespace phalanx::cli
