#include "hosts/connect/opener.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "../no_descriptors.h"
#include "../scratch.h"
#include "wire/messages.h"

namespace phalanx::hosts {
namespace {

using os::milliseconds;

// Hosts that answer after so many milliseconds; less than zero: never. A target's port is its place in the list.
class Delayed : public Transport {
 public:
  explicit Delayed(std::vector<int> after) : after_(std::move(after)), answer_(scratch::folder("opener-test") + "/answer") {
    std::string frame;
    EXPECT_TRUE(wire::encode(frame, wire::Pong{}).ok());
    std::ofstream(answer_) << wire::kStreamMagic << frame;
  }
  Launch launch(const Target& target, int) const override {
    int ms = after_[static_cast<size_t>(target.port)];
    return {{"sh", "-c", ms < 0 ? "exec sleep 60" : fmt::format("sleep {}; cat '{}'; exec sleep 60", ms / 1000.0, answer_)}};
  }
  base::Error explain(const Target&, const Death&) const override { return base::fail(base::ErrorKind::kUnreachable, "ended"); }
  bool may_retry(const Death&) const override { return false; }

 private:
  std::vector<int> after_;
  std::string answer_;
};

struct Outcome {
  int answered = 0;
  std::string error;  // of the only host that fails
  milliseconds failed_after{};
};

// starved: for so long from the start this process has no descriptors left.
Outcome open_all(const std::vector<int>& after, const OpenerOptions& options, milliseconds starved = {}) {
  std::unique_ptr<os::Loop> loop = os::Loop::create().value();
  Delayed transport(after);
  Payload payload({});
  std::vector<Opener::Host> hosts;
  for (size_t i = 0; i < after.size(); ++i) hosts.push_back({{fmt::format("h{}", i), "", static_cast<int>(i)}, &transport});
  Outcome outcome;
  size_t over = 0;
  os::Mono began = os::mono_now();
  Opener opener(*loop, payload, std::move(hosts), options,
                {[&](size_t, const wire::Frame&) { ++outcome.answered, ++over; },
                 [&](size_t, const base::Error& error, std::optional<wire::GuardEnd>) {
                   if (!outcome.error.empty()) return;  // the others end when the opener is shut
                   outcome.error = error.message;
                   outcome.failed_after = std::chrono::floor<milliseconds>(os::mono_now() - began);
                   ++over;
                 }},
                1);
  EXPECT_TRUE(loop->on_child([&](pid_t pid, int status) { opener.on_child(pid, status); }).ok());
  std::optional<NoDescriptors> none;
  if (starved.count() > 0) none.emplace(), loop->after(starved, [&] { none.reset(); });
  opener.start();
  while (over < after.size() && os::mono_now() - began < milliseconds(20'000)) loop->poll(milliseconds(100));
  opener.shut();
  while (!opener.over() && os::mono_now() - began < milliseconds(20'000)) loop->poll(milliseconds(100));
  return outcome;
}

// One try of a second, then the others' answers within half a second of each other count.
OpenerOptions quick() {
  OpenerOptions options;
  options.timeout = milliseconds(1000);
  options.after_ssh = milliseconds(0);
  options.quiet = milliseconds(500);
  options.most_tries = 1;
  return options;
}

TEST(Opener, AHostThatDoesNotAnswerIsGivenUpInItsTime) {
  Outcome outcome = open_all({0, -1}, quick());
  EXPECT_EQ(outcome.answered, 1);
  EXPECT_EQ(outcome.error, "h1: no answer within 1 s");
  EXPECT_GE(outcome.failed_after, milliseconds(1000));
}

TEST(Opener, ASlowHostIsWaitedForWhileOthersStillAnswer) {
  Outcome outcome = open_all({600, 800, 1000, 1200, 1400}, quick());
  EXPECT_EQ(outcome.answered, 5) << outcome.error;
}

TEST(Opener, ADeadHostAmongSlowOnesIsGivenUpWhenTheyHaveAllAnswered) {
  Outcome outcome = open_all({600, 800, 1000, -1, 1200, 1400}, quick());
  EXPECT_EQ(outcome.answered, 5);
  EXPECT_GE(outcome.failed_after, milliseconds(1900));
}

TEST(Opener, AndNoLaterThanAtTheLongest) {
  OpenerOptions options = quick();
  options.longest = milliseconds(1200);
  Outcome outcome = open_all({600, 800, 1000, -1, 1150}, options);
  EXPECT_EQ(outcome.answered, 4);
  EXPECT_GE(outcome.failed_after, milliseconds(1200));
  EXPECT_LT(outcome.failed_after, milliseconds(1600));
}

TEST(Opener, IsHeldUpByAShortageOfDescriptorsAndBlamesNoHost) {
  Outcome outcome = open_all({0, 0, 0}, quick(), milliseconds(600));
  EXPECT_EQ(outcome.answered, 3) << outcome.error;
}

TEST(Opener, AShortageOfDescriptorsThatLastsIsSaidOfThisMachine) {
  Outcome outcome = open_all({0}, quick(), milliseconds(3000));
  EXPECT_EQ(outcome.error, "h0: this machine could not start the program that reaches the host");
  EXPECT_GE(outcome.failed_after, milliseconds(1000));
  EXPECT_LT(outcome.failed_after, milliseconds(2000));
}

}  // namespace
}  // namespace phalanx::hosts
