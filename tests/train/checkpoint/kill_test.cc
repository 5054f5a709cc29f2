// Whoever dies at whatever moment of a save: what claims to be a checkpoint is one, and the one before is still there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <set>
#include <stdexcept>

#include "base/try.h"
#include "engine/checkpoint/saver.h"
#include "os/clock.h"
#include "os/files.h"
#include "pieces.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;

struct Killed {};

const char* const kStages[] = {"shard", "shard-sync", "record", "collect", "manifest", "done", "publish", "best", "prune"};

base::Result<Finished> save_two_ranks(const std::string& folder, int64_t step, int64_t sequence, int64_t keep, const StageHook& hook) {
  const SaveId id{folder, step, "token", sequence, 2};
  const Interrupt interrupt;
  TRY(claim(folder, id.token));
  TRY(clean_leftovers(folder, id.token, sequence));
  for (int rank : {1, 0})
    TRY(write_shard(id, rank, {pieces::share(pieces::state(step), rank, 2, 5), base::Json::object()}, interrupt,
                    rank == 0 ? hook : StageHook()));
  FinishOptions how;
  how.keep = keep;
  how.best = Best{step, "loss", 1};
  return finish(id, how, interrupt, hook);
}

TEST(Kill, AtEveryStageOfASave) {
  for (bool same_step : {false, true})
    for (const std::string_view fatal : kStages) {
      pieces::Folder folder;
      ASSERT_TRUE(save_two_ranks(folder.path(), 1, 0, 1, {}).ok());
      bool reached = false;
      const int64_t step = same_step ? 1 : 2;
      try {
        auto ignored = save_two_ranks(folder.path(), step, 1, 1, [&](std::string_view stage) {
          if (stage == fatal) throw Killed{};
        });
      } catch (const Killed&) { reached = true; }
      ASSERT_TRUE(reached) << fatal;
      Readable found = pieces::value(newest_readable(folder.path()));
      ASSERT_NE(found.reader, nullptr) << fatal;
      EXPECT_TRUE(found.skipped.empty()) << fatal;
      const bool published = fatal == "best" || fatal == "prune";
      EXPECT_EQ(found.reader->step(), published ? step : 1) << fatal;
      ASSERT_TRUE(save_two_ranks(folder.path(), 3, 2, 1, {}).ok()) << fatal;
      std::set<std::string> names;
      for (const std::string& name : pieces::value(names_in(folder.path()))) names.insert(name);
      EXPECT_EQ(names, (std::set<std::string>{".owner", "best.json", "step-00000003"})) << fatal << ": leftovers";
    }
}

// One rank in a process of its own: saves one checkpoint after the other until somebody kills it.
[[noreturn]] void save_for_ever(const std::string& folder, int rank, int world, const std::string& token, int64_t first) {
  auto saver = Saver::open({.folder = folder, .rank = rank, .world = world, .token = token, .keep = 2}).value();
  for (int64_t step = first; step < first + 100'000; ++step) {
    SaveRequest request;
    request.step = step;
    request.pieces = pieces::share(pieces::state(step), rank, world, static_cast<uint64_t>(step));
    request.best = step % 3 == 0 ? std::optional(Best{step, "loss", 1.0}) : std::nullopt;
    if (!saver->save(std::move(request)).ok()) _exit(3);
    // Failures are what this test makes: a rank whose peers are dead waits, and is killed too.
  }
  _exit(0);
}

class Children {
 public:
  ~Children() {
    for (pid_t pid : pids_) kill(pid, SIGKILL);
    for (pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }
  void start(const std::function<void()>& body) {
    const pid_t pid = fork();
    if (pid == 0) body();
    pids_.push_back(pid);
  }
  void kill_one(size_t i) { kill(pids_[i], SIGKILL); }

 private:
  std::vector<pid_t> pids_;
};

void pause_for(std::chrono::microseconds time) {
  timespec rest{time.count() / 1'000'000, time.count() % 1'000'000 * 1000};
  nanosleep(&rest, nullptr);
}

// Everything that claims to be done can be read, and nothing that was done is lost: at least the newest before the kills.
void check(const std::string& folder, int64_t& newest, size_t round) {
  for (const std::string& path : pieces::value(list(folder))) {
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok()) << "round " << round << ": " << reader.error().render();
    pieces::expect_state(*reader, reader->step(), 1, 1);
  }
  Readable found = pieces::value(newest_readable(folder));
  ASSERT_TRUE(found.skipped.empty()) << "round " << round;
  if (newest > 0) {
    ASSERT_NE(found.reader, nullptr) << "round " << round;
    ASSERT_GE(found.reader->step(), newest) << "round " << round;
  }
  if (found.reader) newest = found.reader->step();
}

TEST(Kill, AtTwoHundredRandomMoments) {
  std::mt19937 random(std::random_device{}());  // moments depend on the machine anyway
  // They are spread over about as long as a save takes there and then: longer after a round without one, as on a busy machine.
  constexpr uint32_t kShortest = 20'000, kLongest = 400'000;  // µs
  uint32_t spread = kShortest;
  int64_t progress = 0;
  for (int world = 1; world <= 4; ++world) {
    pieces::Folder folder;
    int64_t newest = 0;
    for (size_t round = 0; round < 51; ++round) {
      const std::string token = make_token();
      {
        Children ranks;
        for (int rank = 0; rank < world; ++rank) ranks.start([&] { save_for_ever(folder.path(), rank, world, token, newest + 1); });
        pause_for(std::chrono::microseconds(3000 + random() % spread));
        ranks.kill_one(random() % static_cast<size_t>(world));  // one first, the others a moment later
        pause_for(std::chrono::microseconds(random() % 4000));
      }
      const int64_t before = newest;
      check(folder.path(), newest, round);
      progress += newest - before;
      spread = newest == before ? std::min(spread + spread / 4, kLongest) : std::max(spread - spread / 5, kShortest);
      if (HasFatalFailure()) return;
    }
    auto saver = Saver::open({.folder = folder.path(), .token = make_token(), .keep = 1}).value();
    SaveRequest last;
    last.step = newest + 1;
    last.pieces = pieces::share(pieces::state(newest + 1), 0, 1, 1);
    ASSERT_TRUE(saver->save(std::move(last)).ok());
    ASSERT_TRUE(saver->wait()->status.ok());
    for (const std::string& name : pieces::value(names_in(folder.path())))
      EXPECT_TRUE(name == ".owner" || name == "best.json" || step_of(name)) << "left: " << name;
  }
  EXPECT_GT(progress, 20) << "saves must have been completed between the kills";
  RecordProperty("saved", static_cast<int>(progress));
}

}  // namespace
