// A line of a log on a disk that is full.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::os {
namespace {

TEST(Append, WhatDoesNotFitIsLeftOutWhole) {
  const std::string path = scratch::folder("append") + "/log";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);  // the write fails instead
    const rlimit limit{20, 20};
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    bool good = ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && append_all(file.get(), "twelve bytes", path).ok();
    good = good && !append_all(file.get(), "twelve bytes", path).ok() && append_all(file.get(), "six ..", path).ok();
    ::_exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path, 100).value(), "twelve bytessix ..");
}

}  // namespace
}  // namespace phalanx::os
