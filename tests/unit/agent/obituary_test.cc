#include "agent/ranks/exit_evidence.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "os/files.h"
#include "scratch.h"

namespace phalanx::agent {
namespace {

std::string text_of(const std::vector<wire::ExitSign>& signs) {
  std::string text;
  for (const wire::ExitSign& sign : signs) text += sign.text + "\n";
  return text;
}

TEST(ExitEvidence, LinesOfInterest) {
  EXPECT_EQ(kernel_line_of_interest("3,812,99122,-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB\n SUBSYSTEM=x"),
            "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB");
  EXPECT_EQ(kernel_line_of_interest("6,813,99123,-;python3[55]: segfault at 0 ip 00 sp 00 error 4 in libfoo.so[7f]"),
            "python3[55]: segfault at 0 ip 00 sp 00 error 4 in libfoo.so[7f]");
  EXPECT_EQ(kernel_line_of_interest("6,1,1,-;eth0: link becomes ready"), "");
  EXPECT_EQ(kernel_line_of_interest("no record: Killed process 1"), "");
  EXPECT_EQ(kernel_line_of_interest(""), "");
}

TEST(ExitEvidence, SaysWhatTheKernelSaidOfThisProcessSinceTheStart) {
  std::string path = testing::TempDir() + "/kmsg-" + std::to_string(::getpid());
  std::ofstream(path) << "3,1,1,-;Out of memory: Killed process 77 (old)\n";
  ExitEvidence obituary(path);
  obituary.born(::getpid(), "/usr/bin/true");
  std::ofstream(path, std::ios::app)
      << "3,2,2,-;Out of memory: Killed process 77 (python3)\n3,3,3,-;Out of memory: Killed process 78 (other)\n"
      << "4,4,4,-;NVRM: Xid (PCI:0000:34:00): 79, GPU has fallen off the bus.\n";
  std::vector<wire::ExitSign> signs = obituary.of(77, SIGKILL);
  ASSERT_EQ(signs.size(), 2u);
  EXPECT_EQ(signs[0].kind, wire::ExitSign::Kind::kKernelKill);
  EXPECT_EQ(signs[1].kind, wire::ExitSign::Kind::kGpuFailure);
  EXPECT_EQ(text_of(signs),
            "kernel: Out of memory: Killed process 77 (python3)\nkernel: NVRM: Xid (PCI:0000:34:00): 79, GPU has fallen off the bus.\n");
  EXPECT_EQ(text_of(obituary.of(77, 0)), "") << "who ends well has no obituary";
  ::unlink(path.c_str());
}

// As in a container: the log's pids are not those seen here, and another job on the machine runs programs of the same name.
TEST(ExitEvidence, InAPidNamespaceARankIsKnownByItsCgroup) {
  std::string root = scratch::folder("obituary-test"), log = root + "/kmsg";
  auto cgroup = [&](int pid, const std::string& path) {
    ASSERT_TRUE(os::make_folders(root + "/proc/" + std::to_string(pid)).ok());
    std::ofstream(root + "/proc/" + std::to_string(pid) + "/cgroup") << "5:cpu:/\n4:memory:" << path << "\n0::/\n";
  };
  cgroup(12, "/jobs/ours");
  cgroup(13, "/jobs/other");
  cgroup(14, "/");
  std::ofstream(log) << "";
  auto oom = [&](const std::string& group, const std::string& task, int pid) {
    std::ofstream(log, std::ios::app)
        << "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/jobs,"
        << "task_memcg=" << group << ",task=" << task << ",pid=" << pid << ",uid=0\n"
        << "3,2,2,-;Memory cgroup out of memory: Killed process " << pid << " (" << task << ") total-vm:1kB\n";
  };
  auto told = [&](pid_t pid, int status) {
    ExitEvidence obituary(log, true, root);
    for (pid_t p : {12, 13, 14}) obituary.born(p, "/usr/bin/python3");
    oom("/jobs/ours", "python3", 4711);
    oom("/", "python3", 4712);
    std::ofstream(log, std::ios::app) << "6,3,3,-;python3[12]: segfault at 0 ip 00 sp 00 error 4\n";
    return text_of(obituary.of(pid, status));
  };
  EXPECT_NE(told(12, SIGKILL).find("Killed process 4711 (python3)"), std::string::npos);
  EXPECT_EQ(told(12, SIGKILL).find("4712"), std::string::npos);
  EXPECT_EQ(told(12, SIGKILL).find("segfault"), std::string::npos) << "that pid is another process's";
  EXPECT_NE(told(12, 1 << 8).find("4711"), std::string::npos) << "a part of it was killed";
  EXPECT_EQ(told(13, SIGKILL), "") << "another job ran out of memory";
  EXPECT_EQ(told(14, SIGKILL), "") << "everybody may be in the root";
}

TEST(ExitEvidence, ARankThatMovesToAnotherCgroupIsKnownByThatToo) {
  std::string root = scratch::folder("obituary-test"), log = root + "/kmsg";
  ASSERT_TRUE(os::make_folders(root + "/proc/12").ok());
  std::ofstream(root + "/proc/12/cgroup") << "0::/jobs/first\n";
  std::ofstream(log) << "";
  ExitEvidence obituary(log, true, root);
  obituary.born(12, "/usr/bin/python3");
  std::ofstream(root + "/proc/12/cgroup") << "0::/jobs/second\n";
  obituary.note_cgroup(12);
  std::ofstream(log, std::ios::app)
      << "6,1,1,-;oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/jobs/second,task=pt_main_thread,pid=99,uid=0\n";
  EXPECT_NE(text_of(obituary.of(12, SIGKILL)).find("pid=99"), std::string::npos);
}

TEST(ExitEvidence, WithoutAKernelLogNothingIsSaid) {
  ExitEvidence obituary("/nowhere/kmsg");
  EXPECT_EQ(text_of(obituary.of(77, SIGKILL)), "");
}

}  // namespace
}  // namespace phalanx::agent
