// --container and --container-args, from words to the hosts of a job.
#include "cli/flags/containers.h"

#include <gtest/gtest.h>

namespace phalanx::cli {
namespace {

job::Job job_of(const std::vector<std::string>& names) {
  job::Job job;
  for (const std::string& name : names) {
    job.hosts.emplace_back();
    job.hosts.back().target.name = job.hosts.back().target.destination = name;
  }
  job.directory = "/data/run";
  return job;
}

RunOptions options_of(std::vector<std::string> containers, std::string arguments = "") {
  RunOptions options;
  options.containers = std::move(containers);
  options.container_args = std::move(arguments);
  return options;
}

std::string refused(const RunOptions& options, job::Job job = job_of({"gpu01", "gpu02"})) {
  const base::Status status = put_in_containers(options, job);
  return status.ok() ? "" : status.error().message;
}

TEST(Containers, AHostsOwnWinsOverTheOneForAll) {
  job::Job job = job_of({"gpu01", "gpu02", "gpu03"});
  job.spares = job_of({"gpu04"}).hosts;
  ASSERT_TRUE(put_in_containers(options_of({"gpu[02-03]=podman:own", "docker:train"}, "-u 1000 -e 'A=b c'"), job).ok());
  EXPECT_EQ(hosts::to_text(job.hosts[0].target.container), "docker:train");
  EXPECT_EQ(hosts::to_text(job.hosts[1].target.container), "podman:own");
  EXPECT_EQ(hosts::to_text(job.hosts[2].target.container), "podman:own");
  EXPECT_EQ(hosts::to_text(job.spares[0].target.container), "docker:train");
  EXPECT_EQ(job.hosts[2].target.container.arguments, (std::vector<std::string>{"-u", "1000", "-e", "A=b c"}));
  EXPECT_EQ(job.hosts[0].target.container.directory, "");
}

TEST(Containers, AnImageGetsTheWorkingDirectory) {
  job::Job job = job_of({"gpu01"});
  ASSERT_TRUE(put_in_containers(options_of({"docker-image:torch:1"}), job).ok());
  EXPECT_EQ(job.hosts[0].target.container.directory, "/data/run");
}

TEST(Containers, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(refused(options_of({"gpu07=docker:x"})), "--container: \"gpu07\" is not one of the hosts");
  EXPECT_EQ(refused(options_of({"docker:x", "docker:y"})), "--container: two containers for gpu01: docker:x and docker:y");
  EXPECT_EQ(refused(options_of({"gpu01=docker:x", "gpu[01-02]=docker:y"})), "--container: two containers for gpu01: docker:x and docker:y");
  EXPECT_EQ(refused(options_of({}, "-v /a:/a")), "--container-args needs --container");
  EXPECT_NE(refused(options_of({"docker:x"}, "-v /a:/a; id")).find("is not a list of words"), std::string::npos);
  EXPECT_NE(refused(options_of({"docker:x"}, "$(id)")), "");
  EXPECT_NE(refused(options_of({"docker:x"}, "-v $NOT_SET_HERE:/a")).find("has no value"), std::string::npos);
  RunOptions synced = options_of({"podman-image:x"});
  synced.sync = true;
  EXPECT_NE(refused(synced).find("the copy would be lost with the container"), std::string::npos);
  job::Job odd = job_of({"gpu01"});
  odd.directory = "/data,1";
  EXPECT_NE(refused(options_of({"podman-image:x"}), odd).find("cannot be mounted into a container"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::cli
