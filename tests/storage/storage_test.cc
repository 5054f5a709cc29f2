// Each system call that the launcher makes on its state and its cache fails once, in each way: with an errno, with half of the bytes, or
// by hanging. A run takes its course and ends with its exit code; no record is lost; whoever asks gets the right answer or an error.
//
// By default every kStride-th case. PHALANX_EXHAUSTIVE=1: all of them, a quarter of an hour.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "run_files.h"
#include "scratch.h"
#include "syscall_faults.h"

namespace {

using namespace phalanx;
using namespace phalanx::storage;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

const std::vector<std::pair<int, const char*>> kFaults{{EIO, "EIO"},     {ESTALE, "ESTALE"},        {EACCES, "EACCES"}, {ENOSPC, "ENOSPC"},
                                                       {EINTR, "EINTR"}, {kShort, "a short count"}, {kHang, "a hang"}};
constexpr size_t kStride = 29;
constexpr int kWorkers = 4;
constexpr std::chrono::milliseconds kEnd{20'000};    // most that a run takes, with all that it waits for at its end
constexpr std::chrono::milliseconds kNotice{4'000};  // after which whoever waits for the disk has said so

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The same path for all cases of a worker, as it stands in what is printed.
void renew(const Place& place, const Place& pattern) {
  fs::remove_all(place.path);
  fs::copy(pattern.path, place.path, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

// Whether the program waits for the disk itself, until it is interrupted as by Ctrl-C.
bool waits_for_disk(Watch& watch, const Operation& operation, const Place& place) {
  const bool starts_ranks = operation.words[0] == "run";
  if (watch.wait(starts_ranks || operation.takes_seconds ? kNotice : 500ms)) return false;
  if (starts_ranks && content(place.path + "/output.err").find("rank") != std::string::npos) return false;
  return !(starts_ranks && content(place.path + "/output").find("hello") != std::string::npos);
}

struct Outcome {
  Ended ended;
  bool injected = false;
  std::string wrong;
  std::map<std::string, std::vector<Call>> calls;
};

Outcome carry_out(const Operation& operation, const Place& place, const Fault& fault, const Ended& plain) {
  Outcome outcome;
  outcome.ended.place = place;
  outcome.ended.fault = fault;
  if (operation.before) outcome.wrong = operation.before(place);
  if (!outcome.wrong.empty()) return outcome;
  Watch watch(program_of(operation, place), fault);
  if (fault.error == kHang && waits_for_disk(watch, operation, place)) {
    outcome.ended.interrupted = true;
    ::kill(watch.pid(), SIGINT);
    if (!watch.wait(3s)) outcome.wrong = "SIGINT does not end it while it waits for the disk";
  }
  std::optional<int> status = watch.wait(kEnd);
  if (!status) outcome.wrong = "it has not ended";
  watch.release();
  if (!watch.wait_for_all(kEnd)) outcome.wrong = "a process of it has not ended";
  outcome.injected = watch.injected();
  outcome.ended.status = status.value_or(-1);
  outcome.ended.fault_at = watch.injected_at();
  outcome.ended.out = content(place.path + "/output");
  outcome.ended.err = content(place.path + "/output.err");
  outcome.calls = watch.calls();
  if (outcome.wrong.empty()) outcome.wrong = operation.check(outcome.ended, plain);
  if (outcome.wrong.empty()) outcome.wrong = aftermath(outcome.ended);
  return outcome;
}

struct Case {
  Fault fault;
  const char* name;
};

std::vector<Case> cases_of(const std::map<std::string, std::vector<Call>>& calls) {
  std::vector<Case> cases;
  for (const auto& [process, seen] : calls)
    for (size_t at = 0; at < seen.size(); ++at)
      for (const auto& [error, name] : kFaults)
        if (error != kShort || seen[at].moves_bytes) cases.push_back({{process, static_cast<int>(at), error}, name});
  return cases;
}

class Storage : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (std::string why = Watch::unavailable(); !why.empty()) GTEST_SKIP() << why;
    folder_ = scratch::folder("storage");
    pattern_ = {folder_ + "/pattern"};
    ASSERT_EQ(furnish(pattern_), "");
    fs::create_directory(pattern_.path + "/kept");
    for (const auto& entry : fs::directory_iterator(pattern_.runs()))
      if (entry.is_directory() && !entry.is_symlink())
        fs::copy(entry.path(), pattern_.path + "/kept/" + entry.path().filename().string(), fs::copy_options::recursive);
  }
  std::string folder_;
  Place pattern_;
};

TEST_P(Storage, EachCallFailsOnceInEachWay) {
  const Operation operation = operations()[static_cast<size_t>(GetParam())];
  const Place first{folder_ + "/place-0"};
  renew(first, pattern_);
  Ended none;
  none.place = first;
  Outcome plain = carry_out(operation, first, {}, none);
  if (operation.words[0] != "run" && !operation.before) plain.wrong = aftermath(plain.ended);
  ASSERT_EQ(plain.wrong, "") << plain.ended.out << plain.ended.err;
  const std::vector<Case> all = cases_of(plain.calls);
  const size_t stride = std::getenv("PHALANX_EXHAUSTIVE") ? 1 : kStride;

  std::mutex mutex;
  std::atomic<size_t> next{0};
  int tried = 0, injected = 0, refused = 0, interrupted = 0;
  auto work = [&](int worker) {
    const Place place{fmt::format("{}/place-{}", folder_, worker)};
    Ended expected = plain.ended;  // of the first place: what names a path is looked at in `check`
    for (auto* text : {&expected.out, &expected.err})
      for (size_t at; (at = text->find(first.path + "/")) != std::string::npos && worker != 0;)
        text->replace(at, first.path.size(), place.path);
    for (size_t i; (i = stride * next++) < all.size();) {
      renew(place, pattern_);
      const Outcome outcome = carry_out(operation, place, all[i].fault, expected);
      std::lock_guard lock(mutex);
      ++tried;
      injected += outcome.injected;
      interrupted += outcome.ended.interrupted;
      refused += WIFEXITED(outcome.ended.status) && WEXITSTATUS(outcome.ended.status) != WEXITSTATUS(plain.ended.status);
      EXPECT_EQ(outcome.wrong, "") << operation.name << ": " << all[i].name << " at call " << all[i].fault.at << " of "
                                   << outcome.ended.fault_at << "\n"
                                   << outcome.ended.out << outcome.ended.err;
    }
  };
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) workers.emplace_back(work, worker);
  for (std::thread& worker : workers) worker.join();

  std::string calls;
  for (const auto& [process, seen] : plain.calls) calls += fmt::format(" {} of {}", seen.size(), process);
  fmt::print("{}: calls:{}; {} faults injected of {} possible, {} refused, {} waited for the disk\n", operation.name, calls, injected,
             all.size(), refused, interrupted);
  EXPECT_GT(all.size(), 40u) << "too few calls were seen";
  EXPECT_GE(injected * 10, tried * 8) << "the calls differ from run to run";
}

INSTANTIATE_TEST_SUITE_P(Of, Storage, testing::Range(0, static_cast<int>(operations().size())), [](const auto& one) {
  std::string name = operations()[static_cast<size_t>(one.param)].name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

}  // namespace
