// A folder through scan, list and receiver into a store, all on this machine: what the tests of copies share.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "../scratch.h"
#include "os/clock.h"
#include "os/files.h"
#include "sync/receive.h"
#include "sync/scan.h"

namespace phalanx::copying {

namespace fs = std::filesystem;

inline constexpr size_t kAll = 1'000'000;

inline void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::trunc) << text;
}
inline std::string get(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
inline void age(const std::string& path, int64_t seconds) {
  const timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    base_ = scratch::folder("sync");
    ASSERT_NE(base_, "");
    root_ = base_ + "/project";
    fs::create_directories(root_);
  }
  sync::Scan scan(sync::ScanLimits limits = {}) {
    base::Result<sync::Scan> found = sync::scan(root_, limits, base_ + "/index");
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().render());
    return found.ok() ? std::move(*found) : sync::Scan{};
  }
  sync::Store store() {
    base::Result<std::optional<sync::Store>> store = sync::Store::open(base_ + "/store");
    EXPECT_TRUE(store.ok() && *store);
    return std::move(**store);
  }
  // The contents that a receiver asks for, as the near side sends them.
  base::Status send(sync::Receiver& receiver, const sync::Manifest& manifest, uint64_t most = ~0ULL) {
    sync::ContentReader reader(root_);
    std::vector<char> room(64 << 10);
    if (base::Status begun = receiver.receive(""); !begun.ok()) return begun;
    for (uint32_t entry : receiver.wanted()) {
      reader.begin(manifest.entries[entry]);
      while (reader.more()) {
        std::string_view piece = reader.next(room);
        piece = piece.substr(0, most);
        most -= piece.size();
        if (base::Status taken = receiver.receive(piece); !taken.ok()) return taken;
        sent_ += piece.size();
        if (most == 0) return base::ok();
      }
    }
    return base::ok();
  }
  static sync::Listing listing(const sync::Manifest& manifest) {
    base::Result<sync::Listing> list = sync::Listing::read(sync::encode(manifest));
    EXPECT_TRUE(list.ok()) << (list.ok() ? "" : list.error().render());
    return list.ok() ? std::move(*list) : sync::Listing();
  }
  // The path of the tree; "" if it failed.
  std::string copy(const std::string& name) { return copy_into(store(), name); }
  std::string copy_into(sync::Store store, const std::string& name) {
    const sync::Scan found = scan();
    base::Result<sync::Receiver> receiver = sync::Receiver::begin(std::move(store), name, listing(found.manifest));
    if (!receiver.ok()) return "";
    wanted_ = receiver->wanted().size();
    base::Status sent = send(*receiver, found.manifest);
    base::Result<bool> built = sent.ok() ? receiver->build(kAll) : base::Result<bool>(sent.error());
    EXPECT_TRUE(built.ok() && *built) << (built.ok() ? "" : built.error().render());
    return receiver->path();
  }

  std::string base_, root_;
  size_t wanted_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace phalanx::copying
