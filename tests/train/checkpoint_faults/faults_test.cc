// Each system call of each operation on checkpoints fails once, in each way: no complete checkpoint is lost, nothing of others is touched,
// no lookup answers "none", and every error names the path.
#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/unicode.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/saver.h"
#include "faults.h"
#include "operations.h"
#include "os/files.h"

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
