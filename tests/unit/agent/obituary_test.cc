#include "agent/obituary.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

namespace agent {
namespace {

TEST(Obituary, LinesOfInterest) {
  EXPECT_EQ(kernel_line_of_interest("3,812,99122,-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB\n SUBSYSTEM=x"),
            "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB");
  EXPECT_EQ(kernel_line_of_interest("6,813,99123,-;python3[55]: segfault at 0 ip 00 sp 00 error 4 in libfoo.so[7f]"),
            "python3[55]: segfault at 0 ip 00 sp 00 error 4 in libfoo.so[7f]");
  EXPECT_EQ(kernel_line_of_interest("6,1,1,-;eth0: link becomes ready"), "");
  EXPECT_EQ(kernel_line_of_interest("no record: Killed process 1"), "");
  EXPECT_EQ(kernel_line_of_interest(""), "");
}

TEST(Obituary, SaysWhatTheKernelSaidOfThisProcessSinceTheStart) {
  std::string path = testing::TempDir() + "/kmsg-" + std::to_string(::getpid());
  std::ofstream(path) << "3,1,1,-;Out of memory: Killed process 77 (old)\n";
  Obituary obituary(path);
  obituary.born(::getpid(), "/usr/bin/true");
  std::ofstream(path, std::ios::app)
      << "3,2,2,-;Out of memory: Killed process 77 (python3)\n3,3,3,-;Out of memory: Killed process 78 (other)\n"
      << "4,4,4,-;NVRM: Xid (PCI:0000:34:00): 79, GPU has fallen off the bus.\n";
  EXPECT_EQ(obituary.of(77, SIGKILL),
            "kernel: Out of memory: Killed process 77 (python3)\nkernel: NVRM: Xid (PCI:0000:34:00): 79, GPU has fallen off the bus.\n");
  EXPECT_EQ(obituary.of(77, 0), "") << "who ends well has no obituary";
  ::unlink(path.c_str());
}

TEST(Obituary, WithoutAKernelLogNothingIsSaid) {
  Obituary obituary("/nowhere/kmsg");
  EXPECT_EQ(obituary.of(77, SIGKILL), "");
}

}  // namespace
}  // namespace agent
