// What is sent of an environment is what rehoming a copy of it gives; and there and back again is where it began.
#include "envmove/carry/carry.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/sha256.h"
#include "envmove/archive/pack.h"
#include "envmove/archive/unpack.h"
#include "envmove/packages.h"
#include "os/files.h"
#include "scratch.h"
#include "sync/scan.h"

using namespace phalanx;
using envmove::Environment;
using envmove::Move;

namespace {

namespace fs = std::filesystem;
constexpr size_t kPlaceholder = 255;

struct Random {
  std::mt19937 engine;
  explicit Random(unsigned seed) : engine(seed) {}
  size_t below(size_t n) { return engine() % n; }
  std::string word(size_t least, size_t most) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    std::string out(1, kLetters[below(26)]);
    for (size_t n = least + below(most - least + 1); out.size() < n;) out += kLetters[below(kLetters.size())];
    return out;
  }
  // A prefix whose neighbours are not it: "/a/b".
  std::string prefix(size_t most) {
    std::string out;
    do out += "/" + word(1, 12);
    while (below(3) != 0 && out.size() + 14 < most);
    return out;
  }
};

void put(const std::string& path, const std::string& content, unsigned mode = 0644) {
  fs::create_directories(fs::path(path).parent_path());
  ASSERT_TRUE(os::write_file_atomic(path, content, mode, os::Durable::kNo).ok()) << path;
}
std::string get(const std::string& path) {
  auto text = os::read_file(path, 64 << 20);
  return text.ok() ? *text : "(" + text.error().message + ")";
}

// Text with the prefix, longer names that begin or end like it, and other words. Neither holds `avoid` by chance.
std::string text_with(Random& random, const std::string& prefix) {
  std::string out;
  for (size_t n = 1 + random.below(20); n > 0; --n) switch (random.below(6)) {
      case 0: out += prefix + "/" + random.word(1, 20); break;
      case 1: out += prefix + random.word(1, 3); break;
      case 2: out += "/mnt" + prefix; break;
      case 3: out += "-L" + prefix + "/lib"; break;
      case 4: out += "\"" + prefix + "\""; break;
      default: out += random.word(0, 30);
    }
  return out;
}

// As an installer leaves a string with a placeholder.
std::string string_with(Random& random, const std::string& prefix, size_t& strings) {
  const std::string text = prefix + (random.below(2) ? "/lib/" + random.word(1, 9) : "");
  ++strings;
  return text + std::string(kPlaceholder - prefix.size() + 1, '\0');
}

TEST(Properties, ThereAndBackAgainGivesTheSameBytes) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::string a = random.prefix(60), b = random.prefix(60);
    if ((a + "/").starts_with(b + "/") || (b + "/").starts_with(a + "/")) continue;
    const Move there{{a}, b}, back{{b}, a};
    std::string text, binary =
                          "\x7f"
                          "ELF";
    size_t strings = 0;
    for (size_t n = random.below(10); n > 0; --n) text += text_with(random, a) + (random.below(2) ? "\n" : " ");
    for (size_t n = random.below(10); n > 0; --n)
      binary += random.word(3, 9) + std::string(1, '\0') + string_with(random, a, strings) + "#" + std::string(1, '\0');
    if (text.find(b) != std::string::npos || binary.find(b) != std::string::npos) continue;
    const auto moved = envmove::replace_text(text, there);
    EXPECT_EQ(envmove::replace_text(moved.data, back).data, text) << seed;
    EXPECT_EQ(envmove::find_prefix(moved.data, a), std::string_view::npos) << seed;
    // Longer names stay: as many of them as before.
    auto count = [](const std::string& data, const std::string& what) {
      size_t found = 0;
      for (size_t at = data.find(what); at != std::string::npos; at = data.find(what, at + 1)) ++found;
      return found;
    };
    if (b.find(a) == std::string::npos) { EXPECT_EQ(count(moved.data, a) + moved.hits, count(text, a)) << seed; }
    const auto bytes = envmove::replace_binary(binary, there, kPlaceholder);
    ASSERT_TRUE(bytes.too_long.empty()) << seed;
    EXPECT_EQ(bytes.data.size(), binary.size()) << seed;
    EXPECT_EQ(bytes.hits, strings) << seed;
    const auto again = envmove::replace_binary(bytes.data, back, kPlaceholder);
    EXPECT_EQ(again.data, binary) << seed;
  }
}

struct Sample {
  std::string folder = scratch::folder("carry"), root = folder + "/envs/llm";
  void make(Random& random) {
    std::string record;
    auto recorded = [&](const std::string& path, const std::string& content, unsigned mode = 0644) {
      put(root + "/" + path, content, mode);
      record += "../../../" + path + "," + envmove::record_hash(base::sha256_hex(content)) + "," + std::to_string(content.size()) + "\n";
    };
    put(root + "/conda-meta/history", "");
    recorded("bin/torchrun", "#!" + root + "/bin/python3.11\nimport sys\n", 0755);
    recorded("lib/python3.11/site-packages/tool/paths.py", "here = '" + root + "/share'\n");
    put(root + "/lib/python3.11/site-packages/tool/__pycache__/paths.cpython-311.pyc", "old bytecode of " + root);
    put(root + "/lib/python3.11/site-packages/tool/__pycache__/other.cpython-311.pyc", "bytecode of " + root);
    for (int i = 0; i < 30; ++i) recorded("share/t" + std::to_string(i), text_with(random, random.below(2) ? root : random.prefix(40)));
    put(root + "/lib/pkgconfig/a.pc", "prefix=" + root + "\n");
    put(root + "/lib/python3.11/site-packages/tool-1.dist-info/RECORD", record + "tool-1.dist-info/RECORD,,\n");
    put(root + "/share/nothing", "");
    fs::create_symlink(root + "/bin/torchrun", root + "/bin/absolute");
    fs::create_symlink("torchrun", root + "/bin/relative");
    put(folder + "/project/src/mine/__init__.py", "x = 1\n");
    put(folder + "/project/src/.git/HEAD", "ref\n");
    put(root + "/lib/python3.11/site-packages/mine.pth", folder + "/project/src\n");
  }
};

// What was carried, written down as the hosts do.
void lay_out(const envmove::Carried& carried, const sync::Aside& aside, const std::string& root, const std::string& to) {
  sync::ContentReader reader(root, &aside);
  fs::create_directories(to);
  for (const sync::Entry& entry : carried.manifest.entries) {
    const std::string path = to + "/" + entry.path;
    if (entry.kind == sync::Kind::kFolder) fs::create_directories(path);
    else if (entry.kind == sync::Kind::kLink) fs::create_symlink(entry.content, path);
    else {
      std::string content;
      char room[4096];
      for (reader.begin(entry); reader.more();) content += reader.next(room);
      base::Sha256 hash;
      hash.update(content);
      EXPECT_EQ(hash.bytes(), entry.content) << entry.path;
      put(path, content, entry.mode);
    }
  }
}

sync::Aside new_aside(const std::string& folder) {
  sync::Aside aside;
  aside.file = os::Fd(::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  EXPECT_TRUE(aside.file.valid());
  return aside;
}

base::Result<envmove::Carried> carry(const Sample& sample, const std::string& to, sync::Aside& aside, size_t* read = nullptr) {
  auto environment = envmove::read_environment(sample.root);
  EXPECT_TRUE(environment.ok());
  return envmove::carry(*environment, {to, sample.folder + "/cache"}, aside,
                        {[&](uint64_t) {
                           if (read) ++*read;
                         },
                         {}});
}

TEST(Carry, IsWhatRehomingACopyGives) {
  Random random(7);
  Sample sample;
  sample.make(random);
  const std::string to = sample.folder + "/somewhere/else/and/longer/llm", copy = sample.folder + "/copy";
  sync::Aside aside = new_aside(sample.folder);
  auto carried = carry(sample, to, aside);
  ASSERT_TRUE(carried.ok()) << carried.error().render();
  ASSERT_EQ(carried->bundled.size(), 1U);
  EXPECT_EQ(carried->bundled[0].place, "src/project");
  lay_out(*carried, aside, sample.root, to);

  fs::copy(sample.root, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  auto environment = envmove::read_environment(copy);
  ASSERT_TRUE(environment.ok());
  auto plan = envmove::plan_rehome(*environment, {{sample.root}, to}, {});
  ASSERT_TRUE(plan.ok() && plan->problems.empty());
  ASSERT_TRUE(envmove::carry_out(*environment, *plan, {}).ok());
  size_t files = 0;
  for (const auto& one : fs::recursive_directory_iterator(copy)) {
    const std::string path = one.path().lexically_relative(copy).string(), there = to + "/" + path;
    if (one.is_directory() || path.ends_with("mine.pth")) continue;
    ++files;
    if (path.ends_with("paths.cpython-311.pyc")) {
      EXPECT_FALSE(os::exists(there)) << "its source has another size there";
    } else if (one.is_symlink()) {
      EXPECT_EQ(fs::read_symlink(there), fs::read_symlink(one.path())) << path;
    } else {
      EXPECT_EQ(get(there), get(one.path().string())) << path;
    }
  }
  EXPECT_GT(files, 35U);
  EXPECT_EQ(get(to + "/lib/python3.11/site-packages/mine.pth"), to + "/src/project\n");
  EXPECT_EQ(get(to + "/src/project/mine/__init__.py"), "x = 1\n");
  EXPECT_FALSE(os::exists(to + "/src/project/.git"));

  // And back: the place is the old one, the bytes are as they were.
  auto moved = envmove::read_environment(to);
  ASSERT_TRUE(moved.ok());
  sync::Aside second = new_aside(sample.folder);
  auto back = envmove::carry(*moved, {sample.root, ""}, second, {});
  ASSERT_TRUE(back.ok()) << back.error().render();
  const std::string again = sample.folder + "/again";
  lay_out(*back, second, to, again);
  for (const char* path :
       {"bin/torchrun", "lib/python3.11/site-packages/tool/paths.py", "lib/python3.11/site-packages/tool-1.dist-info/RECORD"})
    EXPECT_EQ(get(again + "/" + path), get(sample.root + "/" + path)) << path;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(get(again + "/share/t" + std::to_string(i)), get(sample.root + "/share/t" + std::to_string(i)));
}

TEST(Carry, TheSecondTimeIsTheSameAndReadsLittle) {
  Random random(8);
  Sample sample;
  sample.make(random);
  // Files that have just been written may change once more unseen (sync/scan.h): these are old.
  for (const auto& one : fs::recursive_directory_iterator(sample.folder))
    if (one.is_regular_file()) fs::last_write_time(one.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  sync::Aside first = new_aside(sample.folder), second = new_aside(sample.folder);
  auto one = carry(sample, "/data/envs/llm", first);
  auto two = carry(sample, "/data/envs/llm", second);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(one->manifest.entries == two->manifest.entries);
  EXPECT_EQ(first.at.size(), second.at.size());
}

TEST(Carry, AnInterruptedRepairIsNotSent) {
  Random random(9);
  Sample sample;
  sample.make(random);
  put(sample.root + "/" + envmove::kJournal, "{}");
  sync::Aside aside = new_aside(sample.folder);
  auto refused = carry(sample, "/data/llm", aside);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().hint.find("phalanx env rehome"), std::string::npos);
}

TEST(Pack, UnpacksAtAnotherPlace) {
  Random random(10);
  Sample sample;
  sample.make(random);
  auto environment = envmove::read_environment(sample.root);
  ASSERT_TRUE(environment.ok());
  for (const char* name : {"llm.tar.zst", "llm.tar.gz", "llm.run"}) {
    SCOPED_TRACE(name);
    const std::string file = sample.folder + "/" + name, place = sample.folder + "/unpacked from " + name;
    sync::Aside aside = new_aside(sample.folder);
    auto carried = envmove::carry(*environment, {sample.root, ""}, aside, {});
    ASSERT_TRUE(carried.ok());
    auto packing = envmove::packing_of(file);
    ASSERT_TRUE(packing.ok());
    auto packed = envmove::pack(*environment, *carried, aside, *packing, file, "/bin/true", {});
    ASSERT_TRUE(packed.ok()) << packed.error().render();
    auto unpacked = envmove::unpack(file, place, {});
    ASSERT_TRUE(unpacked.ok()) << unpacked.error().render();
    EXPECT_EQ(get(place + "/lib/python3.11/site-packages/tool/paths.py"), "here = '" + place + "/share'\n");
    EXPECT_EQ(get(place + "/lib/python3.11/site-packages/mine.pth"), place + "/src/project\n");
    EXPECT_EQ(fs::read_symlink(place + "/bin/absolute"), place + "/bin/torchrun");
    EXPECT_FALSE(os::exists(place + "/.phalanx-env.json"));
    auto again = envmove::unpack(file, place, {});
    ASSERT_FALSE(again.ok());
    EXPECT_NE(again.error().message.find("already exists"), std::string::npos);
    // Cut off, nothing is at its place, and nothing beside it.
    fs::resize_file(file, packed->bytes - 100);
    auto cut = envmove::unpack(file, sample.folder + "/cut", {});
    EXPECT_FALSE(cut.ok());
    EXPECT_FALSE(os::exists(sample.folder + "/cut"));
    EXPECT_FALSE(os::exists(sample.folder + "/.phalanx-unpack.cut"));
  }
  EXPECT_FALSE(envmove::packing_of("llm.zip").ok());
}

}  // namespace
