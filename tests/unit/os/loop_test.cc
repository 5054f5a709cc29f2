#include "os/loop.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include "os/process.h"

namespace phalanx::os {
namespace {

std::unique_ptr<Loop> make_loop() {
  base::Result<std::unique_ptr<Loop>> loop = Loop::create();
  EXPECT_TRUE(loop.ok());
  return std::move(loop).value();
}

TEST(Loop, TimersRunInOrderAndCanBeCancelled) {
  auto loop = make_loop();
  std::vector<int> order;
  loop->after(milliseconds(20), [&] {
    order.push_back(2);
    loop->stop();
  });
  loop->after(milliseconds(5), [&] { order.push_back(1); });
  TimerId never = loop->after(milliseconds(10), [&] { order.push_back(9); });
  loop->cancel(never);
  loop->run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Loop, APeriodicTimerCancelsItself) {
  auto loop = make_loop();
  int runs = 0;
  TimerId id = 0;
  id = loop->every(milliseconds(1), [&] {
    if (++runs == 3) {
      loop->cancel(id);
      loop->after(milliseconds(10), [&] { loop->stop(); });
    }
  });
  loop->run();
  EXPECT_EQ(runs, 3);
}

TEST(Loop, AWatchMayEndAnotherOfTheSameRound) {
  auto loop = make_loop();
  PipeEnds a = make_pipe().value(), b = make_pipe().value();
  ASSERT_EQ(::write(a.write.get(), "x", 1), 1);
  ASSERT_EQ(::write(b.write.get(), "x", 1), 1);
  int calls = 0;
  WatchId wa = 0, wb = 0;
  wa = loop->watch(a.read.get(), EPOLLIN,
                   [&](uint32_t) {
                     ++calls;
                     loop->unwatch(wa);
                     loop->unwatch(wb);
                   })
           .value();
  wb = loop->watch(b.read.get(), EPOLLIN,
                   [&](uint32_t) {
                     ++calls;
                     loop->unwatch(wa);
                     loop->unwatch(wb);
                   })
           .value();
  loop->poll(milliseconds(100));
  loop->poll(milliseconds(5));
  EXPECT_EQ(calls, 1);
}

TEST(Loop, EveryChildIsReportedOnce) {
  auto loop = make_loop();
  std::vector<pid_t> ours, ended;
  std::vector<int> codes;
  ASSERT_TRUE(loop->on_child([&](pid_t pid, int status) {
                    if (std::find(ours.begin(), ours.end(), pid) == ours.end()) return;  // an earlier test's
                    ended.push_back(pid);
                    codes.push_back(WEXITSTATUS(status));
                    if (ended.size() == 5) loop->stop();
                  })
                  .ok());
  for (int i = 0; i < 5; ++i) {
    SpawnSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"sh", "-c", "exit " + std::to_string(i)};
    auto child = spawn(spec);
    ASSERT_TRUE(child.ok());
    ours.push_back(*child);
  }
  loop->run();
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(codes, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Loop, SignalsArriveInsideTheWait) {
  auto loop = make_loop();
  int got = 0;
  ASSERT_TRUE(loop->on_signal(SIGUSR1,
                              [&](const signalfd_siginfo& info) {
                                got = static_cast<int>(info.ssi_signo);
                                loop->stop();
                              })
                  .ok());
  ::kill(::getpid(), SIGUSR1);
  EXPECT_EQ(got, 0);
  loop->run();
  EXPECT_EQ(got, SIGUSR1);
}

}  // namespace
}  // namespace phalanx::os
