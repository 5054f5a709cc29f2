#include "sync/manifest.h"

#include <gtest/gtest.h>

#include <random>

#include "base/sha256.h"

using namespace phalanx;

namespace {

using sync::Entry;
using sync::Kind;

Entry file(std::string path, std::string_view content = "x", Kind kind = Kind::kFile) {
  base::Sha256 hash;
  hash.update(content);
  return {std::move(path), kind, content.size(), 1'700'000'000'123'456'789, hash.bytes()};
}
Entry folder(std::string path) { return {std::move(path), Kind::kFolder, 0, 0, ""}; }
Entry link(std::string path, std::string to) { return {std::move(path), Kind::kLink, 0, 0, std::move(to)}; }

bool passes(std::vector<Entry> entries) { return sync::decode(sync::encode({std::move(entries)})).ok(); }

TEST(Manifest, ComesBackAsItWasWritten) {
  const sync::Manifest written{
      {folder("a"), file("a-b", "1"), file("a/run.sh", "2", Kind::kProgram), link("a/up", "../a-b"), file("z", "")}};
  base::Result<sync::Manifest> read = sync::decode(sync::encode(written));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->entries, written.entries);
  EXPECT_EQ(read->bytes(), 2U);
  EXPECT_EQ(read->files(), 4U);
}

TEST(Manifest, PathsThatLeadOutsideAreRefused) {
  for (const char* path : {"/etc/passwd", "..", "../x", "a/../../x", ".", "./x", "a//x", "a/", "", "/"})
    EXPECT_FALSE(passes({folder("a"), file(path)})) << path;
  EXPECT_FALSE(passes({file(std::string("a\0b", 3))}));
  EXPECT_FALSE(passes({file(std::string(256, 'n'))}));
  EXPECT_TRUE(passes({file("...")}));
  EXPECT_TRUE(passes({file("a..b")}));
}

TEST(Manifest, NothingLiesInAFileOrALink) {
  EXPECT_FALSE(passes({file("a"), file("a/b")}));
  EXPECT_FALSE(passes({link("a", "b"), file("a/b")}));
  EXPECT_FALSE(passes({file("missing/b")}));
  EXPECT_TRUE(passes({folder("a"), file("a/b")}));
}

TEST(Manifest, NoPathComesTwiceOrOutOfOrder) {
  EXPECT_FALSE(passes({file("a"), file("a")}));
  EXPECT_FALSE(passes({file("b"), file("a")}));
}

TEST(Manifest, LinksStayInside) {
  EXPECT_TRUE(sync::link_stays_inside("a", "b"));
  EXPECT_TRUE(sync::link_stays_inside("a/b/c", "../../x"));
  EXPECT_FALSE(sync::link_stays_inside("a/b/c", "../../../x"));
  EXPECT_FALSE(sync::link_stays_inside("a", ".."));
  EXPECT_FALSE(sync::link_stays_inside("a", "/etc"));
  EXPECT_FALSE(sync::link_stays_inside("a", ""));
  // l -> ../.. is the top; l/../x would leave it, although the words do not.
  EXPECT_FALSE(sync::link_stays_inside("d/e/m", "l/../x"));
  EXPECT_FALSE(passes({link("a", "../outside")}));
}

TEST(Manifest, HostileNumbersAreRefused) {
  const std::string good = sync::encode({{file("a")}});
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(sync::decode(good.substr(0, cut)).ok());
  EXPECT_FALSE(sync::decode(good + "x").ok());
  Entry huge = file("a");
  huge.size = ~0ULL;
  EXPECT_FALSE(passes({huge}));
  Entry first = file("a"), second = file("b");
  first.size = second.size = sync::kMostCopyBytes;
  EXPECT_FALSE(passes({first, second}));
  Entry odd = file("a");
  odd.content = "short";
  EXPECT_FALSE(passes({odd}));
  odd = file("a");
  odd.kind = static_cast<Kind>(9);
  EXPECT_FALSE(passes({odd}));
  std::string many = good;
  many[4] = many[5] = many[6] = '\xff';
  EXPECT_FALSE(sync::decode(many).ok());
}

TEST(Manifest, OfAPushHasModesTimesAndAnyLink) {
  sync::Manifest manifest;
  manifest.with_modes = true;
  manifest.entries = {{"a", sync::Kind::kFolder, 0, 17, "", 0755},
                      {"a/l", sync::Kind::kLink, 0, 0, "/usr/bin/python3"},
                      {"a/m", sync::Kind::kLink, 0, 0, "../../x"}};
  const std::string bytes = sync::encode(manifest);
  base::Result<sync::Manifest> read = sync::decode(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->with_modes);
  EXPECT_EQ(read->entries, manifest.entries);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(sync::decode(bytes.substr(0, cut)).ok()) << cut;
  manifest.entries[0].mode = 04755;
  EXPECT_FALSE(sync::decode(sync::encode(manifest)).ok()) << "setuid";
  manifest.entries[0].mode = 0777;
  EXPECT_FALSE(sync::decode(sync::encode(manifest)).ok()) << "others could write";
  manifest.entries[0].mode = 0700;
  manifest.entries[1].content = std::string("a\0b", 3);
  EXPECT_FALSE(sync::decode(sync::encode(manifest)).ok());
  manifest.entries[1] = {"a/../b", sync::Kind::kLink, 0, 0, "x"};
  EXPECT_FALSE(sync::decode(sync::encode(manifest)).ok());
  manifest.entries[1] = {"a/l/x", sync::Kind::kLink, 0, 0, "x"};
  EXPECT_FALSE(sync::decode(sync::encode(manifest)).ok()) << "below a link";
}

sync::Listing listing(std::vector<Entry> entries) {
  base::Result<sync::Listing> list = sync::Listing::read(sync::encode({std::move(entries)}));
  EXPECT_TRUE(list.ok());
  return list.ok() ? std::move(*list) : sync::Listing();
}

TEST(Manifest, ChangesMakeTheNewListOfTheOldOne) {
  std::minstd_rand random(11);
  auto some = [&] {
    std::vector<Entry> entries{folder("a")};
    for (char c = 'a'; c <= 'z'; ++c)
      if (random() % 3 > 0) entries.push_back(file(std::string("a/") + c, random() % 4 == 0 ? "changed" : "x"));
    if (random() % 2 == 0) entries.push_back(random() % 2 == 0 ? folder("b") : link("b", "a/a"));
    if (random() % 5 == 0) entries.clear();
    return entries;
  };
  for (int i = 0; i < 500; ++i) {
    const sync::Listing before = listing(some()), now = listing(some());
    const base::Result<std::string> made = sync::with_changes(before, sync::changes_between(before, now));
    ASSERT_TRUE(made.ok());
    ASSERT_EQ(*made, now.bytes());
  }
}

TEST(Manifest, ChangesOfOneFileAreShort) {
  std::vector<Entry> entries;
  for (int i = 1000; i < 2000; ++i) entries.push_back(file("f" + std::to_string(i)));
  const sync::Listing before = listing(entries);
  entries[500] = file("f1500", "changed");
  EXPECT_LT(sync::changes_between(before, listing(entries)).size(), 120U);
}

TEST(Manifest, ChangesOfAnotherListAreRefused) {
  const sync::Listing before = listing({folder("a"), file("a/b"), file("c")}), now = listing({folder("a"), file("c"), file("d")});
  const std::string changes = sync::changes_between(before, now);
  EXPECT_FALSE(sync::with_changes(listing({folder("a"), file("c")}), changes).ok());
  EXPECT_FALSE(sync::with_changes(listing({folder("a"), file("a/b"), file("a/x"), file("c")}), changes).ok());
  for (size_t cut = 0; cut < changes.size(); ++cut) EXPECT_FALSE(sync::with_changes(before, changes.substr(0, cut)).ok()) << cut;
  std::string many = changes;
  many[8] = many[9] = many[10] = many[11] = '\xff';  // so many stay
  EXPECT_FALSE(sync::with_changes(before, many).ok());
}

TEST(Manifest, NamesOfCopies) {
  EXPECT_TRUE(sync::is_copy_name("20261123-051500-0a1b2c"));
  for (const char* name : {"", "short", "../../../etc", "new.20261123", "UPPERCASE-NAME", "with/slash-in-it"})
    EXPECT_FALSE(sync::is_copy_name(name)) << name;
}

}  // namespace
