// Each system call of each operation on checkpoints fails once, in each way: no complete checkpoint is lost, nothing of others is touched,
// no lookup answers "none", and every error names the path. And each hangs once, until its process is killed.
#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "base/unicode.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/saver.h"
#include "faults.h"
#include "operations.h"
#include "os/clock.h"
#include "os/files.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;
using namespace engine::checkpoint::faulty;

const std::vector<std::pair<int, const char*>> kFaults{{EIO, "EIO"},       {ESTALE, "ESTALE"}, {EACCES, "EACCES"},
                                                       {ENOSPC, "ENOSPC"}, {EINTR, "EINTR"},   {faults::kShort, "short count"}};

TEST(StorageFaults, EachCallFailsOnceInEachWay) {
  Root root;
  const std::string pattern = root / "pattern", place = root / "run";
  furnish(pattern);
  int injected = 0, refused = 0;
  std::map<std::string, int> by_call;
  for (const Operation& operation : operations()) {
    base::Status status = base::ok();
    const faults::Seen plain = carry_out(operation, pattern, place, -1, 0, status);
    ASSERT_TRUE(status.ok()) << operation.name << ": " << status.error().render();
    ASSERT_EQ(complaint(operation, place, status), "") << operation.name;
    ASSERT_GT(plain.calls.size(), 5u) << operation.name;
    int here = 0;
    for (int at = 0; at < static_cast<int>(plain.calls.size()); ++at)
      for (const auto& [error, name] : kFaults) {
        const faults::Call& call = plain.calls[static_cast<size_t>(at)];
        if (error == faults::kShort && !call.moves_bytes) continue;
        const bool hit = carry_out(operation, pattern, place, at, error, status).injected;
        const std::string wrong = complaint(operation, place, status);
        EXPECT_EQ(wrong, "") << operation.name << ", call " << at << ": " << call.name << " " << call.path << ": " << name;
        if (!hit) continue;
        ++here;
        ++by_call[call.name];
        refused += !status.ok();
      }
    injected += here;
    fmt::print("{}: {} calls, {} faults\n", operation.name, plain.calls.size(), here);
    EXPECT_GE(here, 5 * static_cast<int>(plain.calls.size()) * 9 / 10) << operation.name << ": the calls differ from run to run";
  }
  std::string calls;
  for (const auto& [name, count] : by_call) calls += fmt::format(" {} {}", name, count);
  fmt::print("{} faults injected, {} operations refused;{}\n", injected, refused, calls);
  EXPECT_GT(injected, 1000);
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, injected) << "EINTR and short counts are no reason to give up";
}

// The byte that comes first within the time, or 0.
char byte_from(int fd, int most_ms) {
  pollfd ready{fd, POLLIN, 0};
  char byte = 0;
  return poll(&ready, 1, most_ms) == 1 && read(fd, &byte, 1) == 1 ? byte : '\0';
}

// In a process of its own, which is killed once the call hangs: 'h'. 'e': the operation has ended without that call.
char carry_out_until_killed(const Operation& operation, const std::string& pattern, const std::string& root, int at) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const os::Fd hear(ends[0]);
  os::Fd tell(ends[1]);
  fs::remove_all(root);
  fs::copy(pattern, root, fs::copy_options::recursive);
  const pid_t training = fork();
  if (training == 0) {
    std::unique_ptr<Saver> saver;
    if (operation.with_saver) saver = open_saver(root + "/checkpoints", "second", operation.keep);
    faults::refuse_exchange(!operation.exchange);
    faults::tell_hang(tell.get());
    faults::watch(root, at, faults::kHang);
    (void)operation.act(root, saver.get());
    saver.reset();
    faults::stop();
    (void)!write(tell.get(), "e", 1);
    _exit(0);
  }
  tell.reset();
  const char how = byte_from(hear.get(), 30'000);
  kill(training, SIGKILL);
  waitpid(training, nullptr, 0);
  return how;
}

// A file system that hangs holds whoever calls it until the machine is rebooted or the process is killed. The training that is started
// then resumes from the newest complete checkpoint: each call is where the killed one stood.
TEST(StorageFaults, ATrainingThatIsKilledWhileACallHangsResumesFromTheNewest) {
  Root root;
  const std::string pattern = root / "pattern", place = root / "run";
  furnish(pattern);
  int hung = 0;
  for (const Operation& operation : operations()) {
    base::Status status = base::ok();
    const int calls = static_cast<int>(carry_out(operation, pattern, place, -1, 0, status).calls.size());
    int here = 0;
    for (int at = 0; at < calls; ++at) {
      const char how = carry_out_until_killed(operation, pattern, place, at);
      ASSERT_NE(how, '\0') << operation.name << ", call " << at;
      here += how == 'h';
      const base::Status killed = base::fail(base::ErrorKind::kInterrupted, "killed in " + place);
      EXPECT_EQ(complaint(operation, place, killed), "") << operation.name << ", killed at call " << at;
    }
    hung += here;
    fmt::print("{}: {} calls, {} hangs\n", operation.name, calls, here);
    EXPECT_GE(here, calls * 9 / 10) << operation.name << ": the calls differ from run to run";
  }
  fmt::print("{} hangs injected\n", hung);
  EXPECT_GT(hung, 250);
}

TEST(StorageFaults, AMergeReplacesAnOlderModelWhereNamesCannotBeExchanged) {
  Root root;
  const std::string run = root / "run";
  furnish(run);
  faults::refuse_exchange(true);
  faults::watch(run, -1, 0);
  const Interrupt never;
  const auto merged = merge({.checkpoint = run + "/checkpoints/step-00000003", .folder = run + "/merged", .replace = true}, never);
  faults::stop();
  faults::refuse_exchange(false);
  ASSERT_TRUE(merged.ok()) << merged.error().render();
  EXPECT_GT(fs::file_size(run + "/merged/model.safetensors"), merged->bytes);
  const std::vector<std::string> names = names_in(run).value();
  for (const std::string& name : names) EXPECT_FALSE(name.starts_with(".merging")) << name;
}

// The disk of one rank hangs while it writes its shard.
TEST(StorageFaults, OfAShardThatHangsTheOthersAreToldAtTheDeadline) {
  Root root;
  furnish(root / "run");
  const std::string folder = root / "run/checkpoints";
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = false, go_on = false;
  faults::before_each([&](const faults::Call& call) {
    if (call.path.find("shard-00001-of-00002.safetensors.tmp") == std::string::npos) return;  // only its writer opens it
    std::unique_lock lock(mutex);
    hangs = true;
    changed.notify_all();
    changed.wait(lock, [&] { return go_on; });
  });
  auto open_rank = [&](int rank) {
    SaverOptions options{.folder = folder, .rank = rank, .world = 2, .token = "both", .when_busy = WhenBusy::kRefuse};
    options.deadline = std::chrono::milliseconds(500);
    return *Saver::open(std::move(options));
  };
  auto first = open_rank(0), second = open_rank(1);
  faults::watch(folder, -1, 0);
  auto half = [](int rank) {
    SaveRequest r;
    r.step = 4;
    r.pieces = {{"model.weight", {64}, 32 * rank, at::arange(32 * rank, 32 * rank + 32, at::kFloat)}};
    return r;
  };
  const os::Mono begin = os::mono_now();
  ASSERT_TRUE(second->save(half(1)).ok());
  ASSERT_TRUE(first->save(half(0)).ok());
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return hangs; }));
  }
  EXPECT_FALSE(second->poll()) << "the training of the rank whose disk hangs goes on";
  EXPECT_FALSE(second->save(half(1)).ok()) << "and hears that its last save is not over";
  const SaveOutcome told = *first->wait();
  ASSERT_FALSE(told.status.ok());
  const std::string said = told.status.error().render();
  EXPECT_NE(said.find("rank(s) 1"), std::string::npos) << said;
  EXPECT_NE(said.find(folder), std::string::npos) << said;
  EXPECT_LT(os::mono_now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(whole(folder), (std::set<int64_t>{1, 2, 3}));
  {
    std::lock_guard lock(mutex);
    go_on = true;
  }
  changed.notify_all();
  (void)second->wait();
  first.reset();
  second.reset();
  faults::before_each({});
  faults::stop();
  auto next = open_saver(folder, "next", 0);
  EXPECT_TRUE(save(*next, request(5)).ok());
  EXPECT_EQ(whole(folder), (std::set<int64_t>{1, 2, 3, 5}));
}

bool is_locked(const std::string& owner) {
  const int fd = open(owner.c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool locked = fcntl(fd, F_OFD_SETLK, &whole) != 0 && errno == EAGAIN;
  close(fd);
  return locked;
}

// No other attempt can claim the folder between "am I still the owner?" and the rename.
TEST(Owner, IsLockedFromTheQuestionToTheRename) {
  Root root;
  const std::string folder = root / "checkpoints", saving = folder + "/.saving-";
  auto saver = open_saver(folder, "first", 0);
  int renames = 0, claims = 0;
  faults::before_each([&](const faults::Call& call) {
    const bool publishes = call.path.starts_with(saving) && call.to == folder + "/step-00000001";
    const bool claiming = call.name == "ftruncate";
    renames += publishes;
    claims += claiming;
    if (!publishes && !claiming) return;
    EXPECT_TRUE(is_locked(folder + "/.owner")) << call.name;
  });
  faults::watch(folder, -1, 0);
  EXPECT_TRUE(save(*saver, request(1)).ok());
  EXPECT_TRUE(save(*saver, request(1)).ok());
  EXPECT_TRUE(claim(folder, "second").ok());
  faults::stop();
  faults::before_each({});
  EXPECT_GE(renames, 2);
  EXPECT_EQ(claims, 1);
  EXPECT_FALSE(is_locked(folder + "/.owner"));
}

}  // namespace
