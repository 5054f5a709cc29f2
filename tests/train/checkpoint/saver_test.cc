// Saving in the background, what may go wrong in it, and which checkpoints stay.
#include "engine/checkpoint/saver.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <stdexcept>
#include <thread>

#include "comm/processes.h"
#include "os/clock.h"
#include "pieces.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;
namespace comm = engine::comm;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

std::unique_ptr<Saver> open_saver(const std::string& folder, int rank, int world, SaverOptions options = {}) {
  options.folder = folder;
  options.rank = rank;
  options.world = world;
  if (options.token.empty()) options.token = "t1";
  auto saver = Saver::open(std::move(options));
  if (!saver.ok()) throw std::runtime_error(saver.error().render());
  return std::move(*saver);
}

SaveRequest request(int64_t step, int rank, int world) {
  SaveRequest r;
  r.step = step;
  r.pieces = pieces::share(pieces::state(step), rank, world, 4);
  r.rank_state = {{"place", rank}};
  r.common_state = {{"step", step}};
  return r;
}

std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  for (const std::string& name : pieces::value(names_in(folder))) found.insert(name);
  return found;
}

void expect_good(const std::string& path, int64_t step) {
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().render();
  pieces::expect_state(*reader, step, 3, 8);
}

TEST(Saver, AllRanksSaveInTheBackground) {
  for (int world = 1; world <= 4; ++world) {
    ranks::TempFolder folder;
    std::vector<std::unique_ptr<Saver>> savers;
    for (int rank = 0; rank < world; ++rank) savers.push_back(open_saver(folder.path(), rank, world, {.keep = 2}));
    for (int64_t step : {10, 20, 30})
      for (int rank = 0; rank < world; ++rank) ASSERT_TRUE(savers[static_cast<size_t>(rank)]->save(request(step, rank, world)).ok());
    for (int rank = 0; rank < world; ++rank) {
      std::vector<int64_t> steps;
      while (auto outcome = savers[static_cast<size_t>(rank)]->wait()) {
        ASSERT_TRUE(outcome->status.ok()) << outcome->status.error().render();
        EXPECT_EQ(outcome->path.empty(), rank != 0);
        EXPECT_GT(outcome->bytes, 0u);
        steps.push_back(outcome->step);
      }
      EXPECT_EQ(steps, (std::vector<int64_t>{10, 20, 30}));
    }
    EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "step-00000020", "step-00000030"}));
    expect_good(folder / "step-00000030", 30);
  }
}

// The tensors may change as soon as save() returned.
TEST(Saver, SavesWhatWasThere) {
  ranks::TempFolder folder;
  auto saver = open_saver(folder.path(), 0, 1);
  SaveRequest r = request(1, 0, 1);
  const std::vector<Piece> live = r.pieces;
  ASSERT_TRUE(saver->save(std::move(r)).ok());
  for (const Piece& piece : live) piece.data.zero_();
  ASSERT_TRUE(saver->wait()->status.ok());
  expect_good(folder / "step-00000001", 1);
}

TEST(Saver, OneIsUnderWayAndTheNextWaitsOrIsRefused) {
  ranks::TempFolder folder;
  std::latch go(1);
  auto hold = [&](std::string_view stage) {
    if (stage == "done") go.wait();
  };
  {
    auto saver = open_saver(folder.path(), 0, 1, {.when_busy = WhenBusy::kRefuse, .stage = hold});
    ASSERT_TRUE(saver->save(request(1, 0, 1)).ok());
    EXPECT_TRUE(saver->busy());
    EXPECT_FALSE(saver->poll().has_value());
    auto refused = saver->save(request(2, 0, 1));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().render().find("is still writing step 1"), std::string::npos);
    go.count_down();
    EXPECT_TRUE(saver->wait()->status.ok());
    EXPECT_FALSE(saver->wait().has_value());
    ASSERT_TRUE(saver->save(request(3, 0, 1)).ok());
    EXPECT_TRUE(saver->wait()->status.ok());
  }
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "step-00000001", "step-00000003"}));
}

// A rank that refuses or fails says so, and the finishing rank does not wait for its deadline.
TEST(Saver, TheFailureOfARankReachesTheFinisher) {
  ranks::TempFolder folder;
  auto first = open_saver(folder.path(), 0, 2);
  auto second = open_saver(folder.path(), 1, 2, {.stage = [](std::string_view stage) {
                             if (stage == "shard-sync") throw std::runtime_error("disk on fire");
                           }});
  ASSERT_TRUE(first->save(request(1, 0, 2)).ok());
  ASSERT_TRUE(second->save(request(1, 1, 2)).ok());
  EXPECT_NE(second->wait()->status.error().render().find("disk on fire"), std::string::npos);
  const std::string said = first->wait()->status.error().render();
  EXPECT_NE(said.find("rank 1 could not write its shard"), std::string::npos) << said;
  EXPECT_TRUE(pieces::value(list(folder.path())).empty());
}

TEST(Saver, ARankThatNeverComesIsNamed) {
  ranks::TempFolder folder;
  auto first = open_saver(folder.path(), 0, 3, {.deadline = milliseconds(200)});
  auto last = open_saver(folder.path(), 2, 3);
  ASSERT_TRUE(last->save(request(1, 2, 3)).ok());
  ASSERT_TRUE(first->save(request(1, 0, 3)).ok());
  auto outcome = first->wait();
  EXPECT_EQ(outcome->status.error().kind, base::ErrorKind::kTimeout);
  EXPECT_NE(outcome->status.error().render().find("rank(s) 1 did not arrive"), std::string::npos) << outcome->status.error().render();
}

// The writers of rank 0 and 2 have nothing to do with rank 1's death but to wait for its shard.
TEST(Saver, ARankThatIsKilledWhileItWritesIsNoticedByThoseWhoWaitForIt) {
  ranks::TempFolder folder;
  constexpr int kWorld = 3;
  processes::Processes ranks(kWorld, {}, [&](comm::Group& group) {
    const int rank = group.rank();
    std::unique_ptr<Saver> saver;
    for (const bool turn : {rank == 0, rank != 0}) {
      if (turn)
        saver = open_saver(folder.path(), rank, kWorld, {.stage = [rank](std::string_view stage) {
                             if (rank == 1 && stage == "shard-sync") ::pause();
                           }});
      group.barrier("opened", milliseconds(20'000));
    }
    if (!saver->save(request(1, rank, kWorld)).ok()) throw std::runtime_error("not saved");
    wait_together(group, saver.get());
  });
  ranks.wait_for_start(kWorld);
  const auto shards_of_the_others = [&] {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) count += entry.path().extension() == ".safetensors";
    return count;
  };
  for (int i = 0; i < 1000 && shards_of_the_others() < 2; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(ranks.end_of(0, milliseconds(300)), -1) << "it waits";
  ranks.kill_rank(1);
  for (const int rank : {0, 2}) {
    const int status = ranks.end_of(rank, milliseconds(10'000));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == processes::kThrew) << "rank " << rank << " status " << status;
    EXPECT_NE(ranks.said(rank).find("rank 1 has exited"), std::string::npos) << ranks.said(rank);
  }
}

TEST(Saver, EndingGivesUpTheWait) {
  ranks::TempFolder folder;
  const os::Mono start = os::mono_now();
  {
    auto saver = open_saver(folder.path(), 0, 2);
    ASSERT_TRUE(saver->save(request(1, 0, 2)).ok());
  }
  EXPECT_LT(os::mono_now() - start, std::chrono::seconds(5));
  auto next = open_saver(folder.path(), 0, 1, {.token = "t2"});
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner"})) << "a new attempt removes what the old one left";
}

TEST(Saver, TheSameStepIsReplacedAtOnce) {
  ranks::TempFolder folder;
  pieces::save(folder.path(), 5, 3, 1);
  auto saver = open_saver(folder.path(), 0, 1);
  ASSERT_TRUE(saver->save(request(5, 0, 1)).ok());
  ASSERT_TRUE(saver->wait()->status.ok());
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "step-00000005"}));
  EXPECT_EQ(Reader::open(folder / "step-00000005")->world(), 1);
  expect_good(folder / "step-00000005", 5);
}

// An attempt that was thought dead and comes back must not write among its successor's checkpoints.
TEST(Saver, AnOldAttemptIsFencedOff) {
  ranks::TempFolder folder;
  for (const char* late : {"collect", "publish"}) {
    std::latch there(1), go(1);
    auto old = open_saver(folder.path(), 0, 1, {.token = "old", .stage = [&](std::string_view stage) {
                                                  if (stage != late) return;
                                                  there.count_down();
                                                  go.wait();
                                                }});
    ASSERT_TRUE(old->save(request(1, 0, 1)).ok());
    there.wait();
    auto next = open_saver(folder.path(), 0, 1, {.token = "new"});
    go.count_down();
    const std::string said = old->wait()->status.error().render();
    EXPECT_NE(said.find("another run writes its checkpoints"), std::string::npos) << said;
    EXPECT_TRUE(pieces::value(list(folder.path())).empty());
    ASSERT_TRUE(next->save(request(2, 0, 1)).ok());
    EXPECT_TRUE(next->wait()->status.ok());
    ASSERT_TRUE(remove_all(folder.path()).ok());
  }
}

TEST(Saver, TheBestStays) {
  ranks::TempFolder folder;
  auto saver = open_saver(folder.path(), 0, 1, {.keep = 2});
  for (int64_t step = 1; step <= 6; ++step) {
    SaveRequest r = request(step, 0, 1);
    if (step == 2) r.best = Best{2, "validation_loss", 0.5};
    ASSERT_TRUE(saver->save(std::move(r)).ok());
    auto outcome = saver->wait();
    ASSERT_TRUE(outcome->status.ok());
    EXPECT_EQ(outcome->trouble, "");
  }
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "best.json", "step-00000002", "step-00000005", "step-00000006"}));
  EXPECT_EQ(pieces::value(best(folder.path()))->step, 2);
  EXPECT_EQ(pieces::value(best(folder.path()))->metric, "validation_loss");
  EXPECT_EQ(pieces::value(best(folder.path()))->value, 0.5);
  ASSERT_TRUE(mark_best(folder.path(), {6, "validation_loss", 0.4}).ok());
  ASSERT_TRUE(saver->save(request(7, 0, 1)).ok());
  ASSERT_TRUE(saver->wait()->status.ok());
  EXPECT_EQ(pieces::value(list(folder.path())).size(), 2u) << "2 is not the best any more";
  ASSERT_TRUE(remove_checkpoint(folder / "step-00000006").ok());
  EXPECT_FALSE(pieces::value(best(folder.path())).has_value()) << "a mark of what is gone is none";
  ASSERT_TRUE(remove_all(folder.path()).ok());
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner"}));
}

// Newer is what has more steps, not what was written last or sorts last as text; what only looks like a checkpoint is none.
TEST(Saver, TheNewestAreKeptByTheirSteps) {
  ranks::TempFolder folder;
  EXPECT_FALSE(pieces::value(latest(folder / "none")).has_value());
  for (const char* name : {"step-", "step-x9", "step-00000999"}) fs::create_directory(folder / name);
  EXPECT_FALSE(pieces::value(latest(folder.path())).has_value());
  auto saver = open_saver(folder.path(), 0, 1, {.keep = 2});
  for (int64_t step : {9, 10, 100'000'000, 99}) {
    ASSERT_TRUE(saver->save(request(step, 0, 1)).ok());
    ASSERT_TRUE(saver->wait()->status.ok());
  }
  EXPECT_EQ(pieces::value(list(folder.path())), (std::vector<std::string>{folder / "step-00000099", folder / "step-100000000"}));
  EXPECT_EQ(pieces::value(latest(folder.path())), folder / "step-100000000");
}

TEST(Saver, PiecesThatDoNotMakeTensorsAreNotPublished) {
  struct Case {
    std::function<void(std::vector<Piece>&)> spoil;
    const char* expected;
  };
  const Case cases[] = {
      {[](std::vector<Piece>& p) { p.erase(p.begin()); }, "no shard contains"},
      {[](std::vector<Piece>& p) { p.push_back(p[0]); }, "are in the shards of both rank 0 and rank 0"},
      {[](std::vector<Piece>& p) { p.push_back({p[0].name, p[0].shape, p[0].begin + 1, p[0].data.narrow(0, 0, 1)}); },
       "both rank 0 and rank 0"},
      {[](std::vector<Piece>& p) { p.back().begin = 1'000'000; }, "does not lie in its tensor"},
      {[](std::vector<Piece>& p) { p[1].name = p[0].name, p[1].shape = {1, 2, 3000}; }, "but F32"},
  };
  for (const Case& one : cases) {
    ranks::TempFolder folder;
    auto saver = open_saver(folder.path(), 0, 1);
    SaveRequest r = request(1, 0, 1);
    one.spoil(r.pieces);
    ASSERT_TRUE(saver->save(std::move(r)).ok());
    const base::Status status = saver->wait()->status;
    ASSERT_FALSE(status.ok()) << one.expected;
    EXPECT_NE(status.error().render().find(one.expected), std::string::npos) << one.expected << ": " << status.error().render();
    EXPECT_TRUE(pieces::value(list(folder.path())).empty());
  }
}

// A real file system of 192 KiB.
TEST(Saver, AFullDiskIsNamedAndHarmsNothing) {
  ranks::TempFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=192k") != 0) GTEST_SKIP() << "needs the right to mount";
  struct Unmount {
    std::string path;
    ~Unmount() { umount2(path.c_str(), MNT_DETACH); }
  } unmount{folder.path()};
  auto saver = open_saver(folder.path(), 0, 1);
  ASSERT_TRUE(saver->save(request(1, 0, 1)).ok());
  ASSERT_TRUE(saver->wait()->status.ok());
  int failures = 0;  // too little room for the shard, the record, the manifest, DONE
  for (size_t room = 0;; room += 4096) {
    std::ofstream(folder / "filler") << std::string(1 << 20, 'x');
    fs::resize_file(folder / "filler", fs::file_size(folder / "filler") - room);
    ASSERT_TRUE(saver->save(request(2, 0, 1)).ok());
    const base::Status status = saver->wait()->status;
    fs::remove(folder / "filler");
    expect_good(folder / "step-00000001", 1);
    if (status.ok()) break;
    ++failures;
    EXPECT_EQ(status.error().kind, base::ErrorKind::kUnfit) << status.error().render();
    EXPECT_NE(status.error().render().find("No space left on device"), std::string::npos) << status.error().render();
    EXPECT_NE(status.error().render().find("checkpoint.keep"), std::string::npos);
    EXPECT_EQ(pieces::value(list(folder.path())).size(), 1u);
  }
  EXPECT_GE(failures, 3);
  ASSERT_TRUE(saver->save(request(3, 0, 1)).ok());
  const SaveOutcome outcome = *saver->wait();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().render();
  EXPECT_EQ(names(folder.path()), (std::set<std::string>{".owner", "step-00000001", "step-00000002", "step-00000003"}));
}

TEST(Saver, AReadOnlyFolderIsNamed) {
  ranks::TempFolder folder;
  auto saver = open_saver(folder / "inner", 0, 1);
  ASSERT_TRUE(saver->save(request(1, 0, 1)).ok());
  ASSERT_TRUE(saver->wait()->status.ok());
  if (mount((folder / "inner").c_str(), (folder / "inner").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "needs the right to mount";
  ASSERT_EQ(mount(nullptr, (folder / "inner").c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  ASSERT_TRUE(saver->save(request(2, 0, 1)).ok());
  const base::Status status = saver->wait()->status;
  auto opened = Saver::open({.folder = folder / "inner", .token = "other"});
  umount2((folder / "inner").c_str(), MNT_DETACH);
  EXPECT_EQ(status.error().kind, base::ErrorKind::kUnfit);
  EXPECT_NE(status.error().render().find("Read-only file system"), std::string::npos) << status.error().render();
  EXPECT_NE(status.error().render().find(folder / "inner"), std::string::npos) << status.error().render();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, base::ErrorKind::kUnfit);
  expect_good(folder / "inner/step-00000001", 1);
}

}  // namespace
