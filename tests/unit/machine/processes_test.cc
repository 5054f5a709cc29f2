// Real processes: a listener whose parent has died, a rank whose launcher has died.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "machine/network/sockets.h"
#include "machine/probe.h"
#include "machine/ranks/process_table.h"
#include "os/fd.h"

namespace phalanx::machine {
namespace {

// A grandchild that listens, execs `sleep` with torchrun's variables, and whose parent is dead when this returns.
struct Orphan {
  pid_t pid = 0;
  int port = 0;
  ~Orphan() {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
};

void become_listener(int out) {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || ::listen(fd, 1) != 0) ::_exit(1);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  int32_t said[2] = {::getpid(), ntohs(address.sin_port)};
  ::setenv("RANK", "3", 1);
  ::setenv("WORLD_SIZE", "8", 1);
  ::setenv("LOCAL_RANK", "1", 1);
  // Said before the exec: the reader looks again until the new program is there.
  if (::write(out, said, sizeof(said)) != static_cast<ssize_t>(sizeof(said))) ::_exit(1);
  ::execlp("sh", "sh", "-c", "exec sleep 60", "--api-key", "very-secret", static_cast<char*>(nullptr));
  ::_exit(127);
}

Orphan make_orphan() {
  Orphan orphan;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return orphan;
  pid_t parent = ::fork();
  if (parent == 0) {
    if (::fork() == 0) become_listener(ends[1]);
    ::_exit(0);
  }
  ::waitpid(parent, nullptr, 0);
  ::close(ends[1]);
  int32_t said[2] = {};
  if (::read(ends[0], said, sizeof(said)) == static_cast<ssize_t>(sizeof(said))) orphan.pid = said[0], orphan.port = said[1];
  char end;
  while (::read(ends[0], &end, 1) > 0) {}  // closed by the exec
  ::close(ends[0]);
  return orphan;
}

TEST(Processes, TheOwnerOfAPortAndTheLeftoverOfADeadLauncherAreNamed) {
  Orphan orphan = make_orphan();
  ASSERT_GT(orphan.pid, 0);
  ProbeRequest r;
  r.ports = {orphan.port, 1};
  ProcessFacts p = probe_processes(r);
  ASSERT_EQ(p.ports.size(), 1u);
  EXPECT_EQ(p.ports[0].pid, orphan.pid);
  EXPECT_EQ(p.ports[0].port, orphan.port);
  EXPECT_EQ(p.ports[0].address, "127.0.0.1");
  EXPECT_NE(p.ports[0].command.find("sleep"), std::string::npos) << p.ports[0].command;
  EXPECT_EQ(p.ports[0].command.find("secret"), std::string::npos) << p.ports[0].command;
  EXPECT_LT(p.ports[0].age_s, 60);
  EXPECT_FALSE(p.ports[0].user.empty());
  if (p.ports[0].parent != 1) GTEST_SKIP() << "orphans are given to process " << p.ports[0].parent << " here";
  bool named = false;
  for (const Leftover& l : p.leftovers) named = named || (l.pid == orphan.pid && l.why.find("RANK=3 WORLD_SIZE=8") == 0);
  EXPECT_TRUE(named) << p.leftovers.size() << " leftovers";
}

TEST(Processes, OurOwnListenersAreNotInTheWay) {
  os::Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ProbeRequest r;
  r.ports = {ntohs(address.sin_port)};
  EXPECT_EQ(listeners("", r.ports).size(), 1u);
  EXPECT_TRUE(probe_processes(r).ports.empty());
}

TEST(Processes, StatLinesWithAnyName) {
  ProcessStat s;
  ASSERT_TRUE(parse_stat("12 (a) b (c) S 7 12 12 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 33 0 4711 1 1", s));
  EXPECT_EQ(s.comm, "a) b (c");
  EXPECT_EQ(s.state, 'S');
  EXPECT_EQ(s.parent, 7);
  EXPECT_EQ(s.threads, 33);
  EXPECT_EQ(s.start_ticks, 4711);
  for (const char* bad : {"", "12", "12 (x", "12 (x)", "12 )x( S 1", "12 (x) S 1 2 3"}) EXPECT_FALSE(parse_stat(bad, s)) << bad;
}

TEST(Processes, SecretsAreNotShown) {
  using std::string_literals::operator""s;
  EXPECT_EQ(hide_secrets("python\0train.py\0--hf_token\0abc\0--lr\0001e-4"s), "python train.py --hf_token … --lr 1e-4");
  EXPECT_EQ(hide_secrets("env\0WANDB_API_KEY=abc\0python"s), "env WANDB_API_KEY=… python");
  EXPECT_EQ(hide_secrets("cat\0keys/list\0next"s), "cat keys/list next");
  EXPECT_EQ(hide_secrets("x\0--tokenizer_path\0/m"s), "x --tokenizer_path …") << "rather too much than too little";
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "ü";
  EXPECT_LE(hide_secrets(umlauts).size(), 204u);
}

TEST(Processes, ListenersOfTheKernelsTables) {
  Listener l;
  ASSERT_TRUE(parse_listener("   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 x", l));
  EXPECT_EQ(l.address, "127.0.0.1");
  EXPECT_EQ(l.port, 0x733c);
  EXPECT_EQ(l.uid, 1000u);
  EXPECT_EQ(l.inode, 12345u);
  ASSERT_TRUE(
      parse_listener("   1: 00000000000000000000000000000000:733C 00000000000000000000000000000000:0000 0A 0:0 00:0 0  0 0 9 1 x", l));
  EXPECT_EQ(l.address, "::");
  EXPECT_FALSE(parse_listener("   0: 0100007F:733C 0100007F:0001 01 0:0 00:0 0 1000 0 12345 1 x", l)) << "not listening";
}

}  // namespace
}  // namespace phalanx::machine
