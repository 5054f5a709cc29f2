#include "envmove/archive/extract.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"
#include "scratch.h"
#include "tar.h"

using namespace phalanx;

namespace {

struct Place {
  std::string above = scratch::folder("extract"), inside = above + "/inside";
  os::Fd folder;
  Place() {
    EXPECT_EQ(::mkdir(inside.c_str(), 0700), 0);
    folder = os::Fd(::open(inside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(os::write_file_atomic(above + "/victim", "mine", 0600, os::Durable::kNo).ok());
  }
  base::Result<envmove::Extracted> extract(const std::string& bytes, const envmove::ExtractLimits& limits = {}) {
    EXPECT_TRUE(os::write_file_atomic(above + "/archive", bytes, 0600, os::Durable::kNo).ok());
    const os::Fd archive(::open((above + "/archive").c_str(), O_RDONLY | O_CLOEXEC));
    return envmove::extract(archive, folder, limits, {});
  }
  std::string read(const std::string& path) {
    auto text = os::read_file(path, 1 << 20);
    return text.ok() ? *text : "(" + text.error().message + ")";
  }
};

TEST(Extract, WritesFilesFoldersAndLinksWithTheirModesAndTimes) {
  Place place;
  auto done = place.extract(tar::folder("llm/") + tar::file("llm/bin/tool", "run", 0755) + tar::symbolic("llm/bin/too", "tool") +
                            tar::hard("llm/bin/same", "llm/bin/tool") + tar::file("./llm//plain", "text", 06777) + tar::end());
  ASSERT_TRUE(done.ok()) << done.error().render();
  EXPECT_EQ(done->files, 4U);
  EXPECT_EQ(done->bytes, 7U);
  struct stat tool{}, same{}, plain{};
  ASSERT_EQ(::stat((place.inside + "/llm/bin/tool").c_str(), &tool), 0);
  ASSERT_EQ(::stat((place.inside + "/llm/bin/same").c_str(), &same), 0);
  ASSERT_EQ(::stat((place.inside + "/llm/plain").c_str(), &plain), 0);
  EXPECT_EQ(tool.st_mode & 07777, 0755U);
  EXPECT_EQ(tool.st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(tool.st_uid, ::geteuid());
  EXPECT_EQ(tool.st_ino, same.st_ino);
  EXPECT_EQ(plain.st_mode & 07777, 0755U) << "neither setuid nor writable for others";
  EXPECT_EQ(place.read(place.inside + "/llm/bin/too"), "run");
}

TEST(Extract, NothingOutsideIsTouched) {
  const std::string name(300, 'n');
  const struct {
    const char* what;
    std::string bytes, why;
  } cases[] = {
      {"absolute", tar::file("/tmp/phalanx-escape", "x"), "an absolute path"},
      {"above", tar::file("../victim", "x"), "a path with .."},
      {"above, later", tar::file("llm/../../victim", "x"), "a path with .."},
      {"above, at its end", tar::folder("llm/.."), "a path with .."},
      {"through a link", tar::symbolic("out", "..") + tar::file("out/victim", "x"), "through a link"},
      {"through an absolute link", tar::symbolic("out", "/tmp") + tar::file("out/phalanx-escape", "x"), "through a link"},
      {"a folder through a link", tar::symbolic("out", "..") + tar::folder("out/new"), "through a link"},
      {"deep through a link", tar::folder("a") + tar::symbolic("a/b", "../..") + tar::file("a/b/c/victim", "x"), "through a link"},
      {"a file over a link", tar::symbolic("out", "../victim") + tar::file("out", "x"), "a second entry"},
      {"a folder over a link", tar::symbolic("out", "..") + tar::folder("out") + tar::file("out/victim", "x"), "a second entry"},
      {"a link over a folder", tar::folder("d") + tar::symbolic("d", ".."), "a second entry"},
      {"a file twice", tar::file("f", "x") + tar::file("f", "y"), "a second entry"},
      {"hard, above", tar::hard("f", "../victim"), "a path with .."},
      {"hard, absolute", tar::hard("f", "/etc/passwd"), "an absolute path"},
      {"hard, to a link", tar::symbolic("out", "../victim") + tar::hard("f", "out"), "no file of the archive"},
      {"hard, through a link", tar::symbolic("out", "..") + tar::hard("f", "out/victim"), "no file of the archive"},
      {"hard, to nothing", tar::hard("f", "g"), "no file of the archive"},
      {"hard, to a folder", tar::folder("d") + tar::hard("f", "d"), "no file of the archive"},
      {"a file in a file", tar::file("f", "x") + tar::file("f/g", "y"), ""},
      {"a device", tar::entry("f", '3'), "neither a file nor a folder nor a link"},
      {"a pipe", tar::entry("f", '6'), "neither a file nor a folder nor a link"},
      {"a link to nothing", tar::symbolic("f", ""), ""},
      {"the top as a file", tar::file("./", "x"), ""},
      {"no archive", "hello, world", ""},
      {"nothing", "", ""},
      {"cut off", tar::file("f", std::string(5000, 'x')).substr(0, 2000), ""},
  };
  for (const auto& one : cases) {
    Place place;
    auto done = place.extract(one.bytes + (one.bytes.size() % 512 == 0 && !one.bytes.empty() ? tar::end() : ""));
    if (std::string(one.what) == "cut off") done = place.extract(one.bytes);
    EXPECT_EQ(place.read(place.above + "/victim"), "mine") << one.what;
    EXPECT_FALSE(os::exists("/tmp/phalanx-escape")) << one.what;
    EXPECT_FALSE(os::exists(place.above + "/new")) << one.what;
    ASSERT_FALSE(done.ok()) << one.what;
    EXPECT_NE(done.error().render().find(one.why), std::string::npos) << one.what << ": " << done.error().render();
  }
}

TEST(Extract, IsBounded) {
  Place place;
  auto many = place.extract(tar::file("a", "") + tar::file("b", "") + tar::file("c", "") + tar::end(), {.entries = 2});
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.error().message.find("more than 2 entries"), std::string::npos) << many.error().render();
  Place other;
  auto large = other.extract(tar::file("a", std::string(600, 'x')) + tar::file("b", std::string(600, 'x')) + tar::end(), {.bytes = 1000});
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message.find("the archive has more than"), std::string::npos) << large.error().render();
  Place full;
  auto none = full.extract(tar::file("a", "x") + tar::end(), {.reserve = 1ULL << 60});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, base::ErrorKind::kUnfit);
  EXPECT_FALSE(os::exists(full.inside + "/a"));
}

TEST(Extract, ReadsWhatAnArchiveSaysOfItself) {
  const envmove::PackedFacts facts{"/opt/envs/llm", 4, 1};
  Place place;
  auto done = place.extract(tar::file("llm/.phalanx-env.json", envmove::encode(facts)) + tar::file("llm/f", "text") + tar::end());
  ASSERT_TRUE(done.ok()) << done.error().render();
  ASSERT_TRUE(done->facts);
  EXPECT_EQ(done->facts->prefix, "/opt/envs/llm");
  EXPECT_FALSE(os::exists(place.inside + "/llm/.phalanx-env.json"));
  Place small;
  auto refused =
      small.extract(tar::file("llm/.phalanx-env.json", envmove::encode({"/x", 1ULL << 43, 1})) + tar::file("llm/f", "t") + tar::end());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, base::ErrorKind::kUnfit);
  EXPECT_FALSE(os::exists(small.inside + "/llm/f"));
  for (const char* bad : {"", "{}", "[]", "{\"magic\":\"phalanx environment\",\"version\":2,\"bytes\":1,\"files\":1}",
                          "{\"magic\":\"phalanx environment\",\"version\":1,\"bytes\":-1,\"files\":1}",
                          "{\"magic\":\"phalanx environment\",\"version\":1,\"bytes\":1,\"files\":1,\"prefix\":\"relative\"}"})
    EXPECT_FALSE(envmove::decode_facts(bad)) << bad;
}

}  // namespace
