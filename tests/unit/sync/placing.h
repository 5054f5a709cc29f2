// A folder through scan, list and placer into a target, all on this machine: what the tests of pushes share.
#pragma once

#include "copying.h"
#include "sync/place.h"

namespace phalanx::copying {

class Place : public Copy {
 protected:
  void SetUp() override {
    Copy::SetUp();
    target_ = base_ + "/target";
  }
  sync::Scan everything() {
    base::Result<sync::Scan> found = sync::scan(root_, sync::kPushLimits, base_ + "/index", sync::Take::kEverything);
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().render());
    return found.ok() ? std::move(*found) : sync::Scan{};
  }
  base::Result<std::unique_ptr<sync::Placer>> begin(const sync::Scan& scan, bool remove = false, bool among_others = false) {
    base::Result<sync::Target> target = sync::open_target(target_, among_others);
    if (!target.ok()) return std::move(target).error();
    base::Result<std::optional<sync::Store>> store = sync::Store::open(target_ + "/" + sync::kIncoming);
    if (!store.ok()) return std::move(store).error();
    if (!*store) return base::fail(base::ErrorKind::kTimeout, "another session");
    base::Result<sync::Listing> list = sync::Listing::read(sync::encode(scan.manifest));
    if (!list.ok()) return std::move(list).error();
    (*store)->at_work = [this] { ++told_; };
    return sync::Placer::begin(std::move(**store), std::move(*target), std::move(*list), scan.mode, remove);
  }
  base::Status give(sync::Placer& placer, const sync::Manifest& manifest, uint64_t most = ~0ULL) {
    sync::ContentReader reader(root_);
    std::vector<char> room(64 << 10);
    sent_ = 0;
    if (base::Status begun = placer.receive(""); !begun.ok()) return begun;
    for (uint32_t entry : placer.wanted()) {
      reader.begin(manifest.entries[entry], placer.partial().bytes > 0 && placer.partial().entry == entry ? placer.partial().bytes : 0);
      while (reader.more()) {
        const std::string_view piece = reader.next(room).substr(0, most - sent_);
        if (base::Status taken = placer.receive(piece); !taken.ok()) return taken;
        sent_ += piece.size();
        if (sent_ == most) return base::ok();
      }
    }
    return base::ok();
  }
  // The whole of it. "": it worked; else the error.
  std::string push(bool remove = false, bool among_others = false) {
    const sync::Scan scan = everything();
    base::Result<std::unique_ptr<sync::Placer>> placer = begin(scan, remove, among_others);
    if (!placer.ok()) return placer.error().render();
    wanted_ = (*placer)->wanted().size();
    base::Status given = give(**placer, scan.manifest);
    if (!given.ok()) return given.error().render();
    base::Result<bool> built = false;
    while (built.ok() && !*built) built = (*placer)->build(3);
    removed_ = (*placer)->removed();
    stayed_ = (*placer)->stayed();
    return built.ok() ? "" : built.error().render();
  }
  // Whether the target has the tree of the source and nothing else.
  void expect_same() {
    const std::string differ = "cd " + base_ + " && diff -r --no-dereference project target | grep -v ': .phalanx-push$' > differ";
    EXPECT_NE(::system(differ.c_str()), 0) << get(base_ + "/differ");
    const std::string list = "find . -path ./.phalanx-push -o -mindepth 1 ! -type l -printf '%p %m %T@\\n' | sort > " + base_ + "/";
    ASSERT_EQ(::system(("cd " + root_ + " && " + list + "here").c_str()), 0);
    ASSERT_EQ(::system(("cd " + target_ + " && " + list + "there").c_str()), 0);
    EXPECT_EQ(get(base_ + "/here"), get(base_ + "/there"));
  }
  void tree() {
    put(root_ + "/a/deep/f", "deep");
    put(root_ + "/a/same", "twice");
    put(root_ + "/same", "twice");
    put(root_ + "/.gitignore", "*\n");
    put(root_ + "/.git/HEAD", "ref");
    put(root_ + "/empty", "");
    put(root_ + "/run", "#!/bin/sh\n");
    fs::permissions(root_ + "/run", fs::perms(0750));
    fs::create_directories(root_ + "/no/thing");
    fs::create_symlink("/usr/bin/python3", root_ + "/python");
    fs::create_symlink("../../outside", root_ + "/a/out");
    age(root_ + "/a/deep/f", 1000);
    age(root_ + "/a/deep", 2000);
    fs::permissions(root_ + "/no", fs::perms(0555));
  }
  std::string target_;
  size_t removed_ = 0, stayed_ = 0, told_ = 0;
};

}  // namespace phalanx::copying
