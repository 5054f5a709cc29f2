#include "hosts/connect/ssh_environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/local_socket.h"
#include "scratch.h"

namespace phalanx::hosts {
namespace {

class SshEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch::folder("ssh-environment");
    socket_ = folder_ + "/0123";
    listen();
    ::setenv("PHALANX_TEST_ONE", "1", 1);
    ::setenv("PHALANX_TEST_TWO", "2", 1);
  }
  void TearDown() override {
    ::unsetenv("PHALANX_TEST_ONE");
    ::unsetenv("PHALANX_TEST_TWO");
  }
  void listen() {
    base::Result<os::Fd> listener = os::listen_local(folder_, "0123");
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
  }
  // Asks a program that prints these lines where ssh -G prints its configuration.
  Offered learn(const std::string& lines, int exit_code = 0, const std::string& plain = "forwardx11 no\nforwardagent no\n") {
    const std::string program = folder_ + "/ssh";
    std::ofstream(program) << "#!/bin/sh\n[ \"$*\" = '-G -T gpu02' ] || exit 9\ncat <<'END'\n"
                           << plain << lines << "END\nexit " << exit_code << "\n";
    ::chmod(program.c_str(), 0700);
    forget_environment(socket_);
    learn_environment(socket_, {program, "-T", "gpu02"});
    return wait();
  }
  Offered wait() {
    for (int i = 0; i < 500; ++i, ::usleep(10'000))
      if (Offered offered = offered_environment(socket_); offered.known) return offered;
    return {};
  }

  std::string folder_, socket_;
  os::Fd listener_;
};

TEST_F(SshEnvironment, IsNotKnownBeforeSshWasAsked) { EXPECT_FALSE(offered_environment(socket_).known); }

TEST_F(SshEnvironment, HoldsWhatThePatternsName) {
  Offered offered = learn("user root\nsendenv PHALANX_TEST_O*\nsendenv NOBODY\nsendenv\n");
  ASSERT_TRUE(offered.environment);
  EXPECT_EQ(*offered.environment, std::vector<std::string>{"PHALANX_TEST_ONE=1"});
  offered = learn("sendenv PHALANX_TEST_?WO\nsendenv PHALANX_TEST\n");
  ASSERT_TRUE(offered.environment);
  EXPECT_EQ(*offered.environment, std::vector<std::string>{"PHALANX_TEST_TWO=2"});
  offered = learn("user root\n");
  ASSERT_TRUE(offered.environment);
  EXPECT_TRUE(offered.environment->empty());
}

TEST_F(SshEnvironment, WhatOnlySshDoesIsLeftToIt) {
  for (const char* lines : {"sendenv LANG\nsetenv PHALANX_TEST_ONE=other\n", "sendenv PHALANX_[TEST]*\n"}) {
    const Offered offered = learn(lines);
    EXPECT_TRUE(offered.known && !offered.environment) << lines;
  }
  const Offered failed = learn("sendenv LANG\n", 255);
  EXPECT_TRUE(failed.known && !failed.environment);
  // Each session asks for a display; and what prints no configuration is no ssh.
  for (const char* plain : {"forwardx11 yes\nforwardagent no\n", "forwardx11 no\nforwardagent yes\n", ""}) {
    const Offered offered = learn("sendenv LANG\n", 0, plain);
    EXPECT_TRUE(offered.known && !offered.environment) << plain;
  }
}

// The answer holds for one connection.
TEST_F(SshEnvironment, IsNotKnownOfTheNextConnection) {
  ASSERT_TRUE(learn("sendenv LANG\n").known);
  ::usleep(20'000);
  listen();
  EXPECT_FALSE(offered_environment(socket_).known);
}

// Whatever the folder is called: sockets stay.
TEST_F(SshEnvironment, OnlyWhatConnectionsHaveLeftGoes) {
  const std::string folder = folder_ + "/of.environment";
  std::filesystem::create_directory(folder);
  for (const char* name : {"/0123", "/0123.environment", "/4567.environment"}) std::ofstream(folder + name) << "x";
  forget_ended(folder);
  EXPECT_TRUE(std::filesystem::exists(folder + "/0123") && std::filesystem::exists(folder + "/0123.environment"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/4567.environment"));
}

TEST_F(SshEnvironment, WhatConnectionsHaveLeftGoes) {
  for (const char* name : {"/4567.environment", "/4567.environment.tmp.12.ab"}) std::ofstream(folder_ + name) << "1 2.3.4\nLANG\n";
  ASSERT_TRUE(learn("sendenv LANG\n").known);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/4567.environment"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/4567.environment.tmp.12.ab"));
}

}  // namespace
}  // namespace phalanx::hosts
