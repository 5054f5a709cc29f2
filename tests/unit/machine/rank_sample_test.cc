// What is seen of real processes from outside: their waits, files, sockets, stacks.
#include "machine/ranks/profile.h"
#include "machine/ranks/sample.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "machine/ranks/stack_scan.h"
#include "machine/ranks/use.h"
#include "os/fd.h"
#include "os/net.h"

using namespace phalanx;

namespace {

using namespace std::chrono_literals;

// A child that runs `body` and never returns from it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ == 0) {
      body();
      ::_exit(0);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // Sampled until its main thread waits in `wchan` (any, if empty) or two seconds have passed.
  machine::RankSample sample(const std::string& wchan) const {
    machine::RankSample last;
    for (os::Mono end = os::mono_now() + 2s; os::mono_now() < end;) {
      last = machine::sample_ranks({{7, pid_, 42}}, true, false, 1000ms).ranks.at(0);
      if (!last.processes.empty() && !last.processes[0].threads.empty() &&
          last.processes[0].threads[0].wchan.find(wchan) != std::string::npos)
        break;
    }
    return last;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(RankSample, ASleeperAndItsStack) {
  Child child([] { ::sleep(100); });
  machine::RankSample s = child.sample("nanosleep");
  EXPECT_EQ(s.rank, 7);
  EXPECT_EQ(s.silent_ms, 42);
  ASSERT_EQ(s.processes.size(), 1u);
  const machine::ThreadSample& main = s.processes[0].threads.at(0);
  EXPECT_EQ(main.state, "S");
  EXPECT_NE(main.wchan.find("nanosleep"), std::string::npos);
  ASSERT_FALSE(main.frames.empty());
  bool found = false;
  for (const std::string& frame : main.frames) found = found || frame.find("nanosleep") != std::string::npos;
  EXPECT_TRUE(found) << main.frames[0];
}

TEST(RankSample, WhatAPollWaitsFor) {
  auto polling = [](int descriptors) {
    return [descriptors] {
      int ends[2], more[2];
      if (::pipe(ends) != 0 || ::pipe(more) != 0) return;
      pollfd fds[2] = {{ends[0], POLLIN, 0}, {more[0], POLLIN, 0}};
      ::poll(fds, static_cast<nfds_t>(descriptors), 100'000);
    };
  };
  EXPECT_EQ(Child(polling(1)).sample("poll").processes.at(0).threads.at(0).waits_on, "a pipe");
  EXPECT_EQ(Child(polling(2)).sample("poll").processes.at(0).threads.at(0).waits_on, "");
  // An array that is not there, or a descriptor that is not.
  Child none([] { ::poll(nullptr, 0, 100'000); });
  EXPECT_EQ(none.sample("poll").processes.at(0).threads.at(0).waits_on, "");
  Child negative([] {
    pollfd fd{-1, POLLIN, 0};
    ::poll(&fd, 1, 100'000);
  });
  EXPECT_EQ(negative.sample("poll").processes.at(0).threads.at(0).waits_on, "");
}

TEST(RankSample, AStoppedOne) {
  Child child([] { ::raise(SIGSTOP); });
  for (os::Mono end = os::mono_now() + 2s; os::mono_now() < end;)
    if (child.sample("").processes.at(0).state == "T") break;
  EXPECT_EQ(child.sample("").processes.at(0).state, "T");
}

TEST(RankSample, APeerThatDoesNotReadShutsTheWindow) {
  auto listener = os::listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  auto near = os::connect_tcp_start(listener->endpoint);
  ASSERT_TRUE(near.ok());
  os::Accepted far;
  for (os::Mono end = os::mono_now() + 2s; !far.fd.valid() && os::mono_now() < end;) {
    auto accepted = os::accept_tcp(listener->fd.get());
    if (accepted.ok()) far = std::move(accepted).value();
  }
  ASSERT_TRUE(far.fd.valid());
  std::string data(1 << 20, 'x');
  while (os::write_step(near->get(), data.data(), data.size()).kind == os::IoStep::kBytes) {}
  machine::RankSample s;
  for (os::Mono end = os::mono_now() + 3s; os::mono_now() < end;) {
    s = machine::sample_ranks({{0, ::getpid(), 0}}, false, false, 1000ms).ranks.at(0);
    bool shut = false;
    for (const machine::SocketSample& k : s.sockets) shut = shut || k.timer == "persist";
    if (shut) break;
  }
  bool shut = false;
  for (const machine::SocketSample& k : s.sockets) {
    if (k.timer != "persist") continue;
    shut = true;
    EXPECT_EQ(k.remote, listener->endpoint.str());
    EXPECT_EQ(k.remote_address, "127.0.0.1");
    EXPECT_GT(k.send_queue, 0);
    EXPECT_EQ(k.state, "ESTABLISHED");
  }
  EXPECT_TRUE(shut);
}

TEST(RankUse, ReadsAStatLineWithANameThatHoldsAnything) {
  machine::ProcessUse use;
  ASSERT_TRUE(machine::parse_use(
      "46 (a) b (c)) S 1 46 46 0 -1 4194560 100 0 7 0 250 50 0 0 20 0 3 0 12345 1000000 300 18446744073709551615 1", use));
  EXPECT_EQ(use.name, "a) b (c)");
  EXPECT_EQ(use.state, 'S');
  EXPECT_EQ(use.major_faults, 7);
  EXPECT_EQ(use.cpu_ms, 3000);
  EXPECT_EQ(use.start_ticks, 12345u);
  for (const char* bad : {"", "46", "46 (x", "46 (x) S 1", ")("}) EXPECT_FALSE(machine::parse_use(bad, use)) << bad;
}

TEST(RankUse, TheTimeThatAHypervisorTakesAndThatOthersHaveTheCpu) {
  machine::CpuTimes times = machine::cpu_times_in("cpu  10 20 30 400 50 6 7 80 9 9\ncpu0 1 1 1 1\n");
  EXPECT_EQ(times.all, 603);
  EXPECT_EQ(times.idle, 450);
  EXPECT_EQ(times.stolen, 80);
  for (const char* bad : {"", "cpu", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7", "cpu -1 2 3 4 5 6 7 8", "cpu a b c d e f g h"})
    EXPECT_EQ(machine::cpu_times_in(bad).all, 0) << bad;
  EXPECT_GT(machine::cpu_times().all, 0);
  EXPECT_EQ(machine::delayed_ms_in("8196769 2534088000 17\n"), 2534);
  for (const char* bad : {"", "1 2", "1 -2 3", "1 x 3"}) EXPECT_FALSE(machine::delayed_ms_in(bad)) << bad;
}

TEST(RankProfile, FindsAProcessWhereItSpendsItsTime) {
  Child sleeper([] { ::poll(nullptr, 0, 100'000); });
  Child worker([] {
    for (std::atomic<uint64_t> i = 0;;) ++i;
  });
  sleeper.sample("poll");
  std::vector<machine::RankProfile> profiles = machine::profile_ranks({{4, sleeper.pid(), 0}, {5, worker.pid(), 0}}, 20, 400ms);
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[0].rank, 4);
  EXPECT_EQ(profiles[0].looks, 20);
  ASSERT_EQ(profiles[0].seen.size(), 1u) << "one place, counted";
  EXPECT_EQ(profiles[0].seen[0].times, 20);
  EXPECT_NE(profiles[0].seen[0].thread.wchan.find("poll"), std::string::npos);
  int64_t running = 0;
  for (const machine::OftenSeen& seen : profiles[1].seen) running += seen.thread.state == "R" ? seen.times : 0;
  EXPECT_EQ(running, 20);
}

TEST(RankProfile, AProcessThatEndsIsLookedAtNoMore) {
  pid_t gone = 0;
  {
    Child child([] { ::poll(nullptr, 0, 100'000); });
    gone = child.pid();
  }
  EXPECT_EQ(machine::profile_ranks({{0, gone, 0}}, 3, 30ms).at(0).looks, 0);
}

TEST(StackScan, NamesWithoutParameters) {
  EXPECT_EQ(machine::plain_function("_ZN4gloo7barrierERNS_14BarrierOptionsE"), "gloo::barrier");
  EXPECT_EQ(machine::plain_function("poll"), "poll");
  EXPECT_EQ(machine::plain_function("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector::push_back");
  EXPECT_LE(machine::plain_function(std::string(5000, 'a')).size(), 100u);
}

TEST(StackScan, MapsAndFilesThatAreNone) {
  auto maps =
      machine::parse_maps("55d0-55d1 r-xp 00000000 fe:00 1    /usr/bin/a b\n55d1-55d2 rw-p 0 0 0 [heap]\njunk\n9-8 r-xp 0 0 0 /x\n");
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].path, "/usr/bin/a b");
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(machine::Symbols("").at_file_offset(0), "");
  EXPECT_EQ(machine::Symbols(std::string(64, '\x7f')).at_file_offset(1), "");
}

}  // namespace
