#include "diagnosis/logs/files.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <filesystem>

#include <fstream>

#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

class LogFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "log_files." + std::to_string(::getpid()) + "/";
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(os::make_folders(folder_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& content) {
    std::string path = folder_ + name;
    EXPECT_TRUE(os::make_folders(path.substr(0, path.rfind('/'))).ok());
    std::ofstream(path) << content;
    return path;
  }
  std::vector<std::string> names(const std::string& operand) {
    std::vector<std::string> out;
    auto files = find_logs(operand);
    EXPECT_TRUE(files.ok());
    if (files.ok())
      for (const LogFile& file : *files) out.push_back(file.name.substr(folder_.size()));
    return out;
  }
  LogFacts read(const std::string& path, bool* damaged = nullptr) {
    LogScan scan;
    auto done = read_log(scan, {.name = path, .host = {}});
    EXPECT_TRUE(done.ok());
    if (damaged && done.ok()) *damaged = done->damaged;
    return scan.finish();
  }
  std::string folder_;
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

TEST_F(LogFiles, AFolderIsItsLogsInTheOrderOfPeople) {
  put("rank_10.log", "x");
  put("rank_9.log", "x");
  put("notes.md", "x");
  put(".hidden.log", "x");
  put("a/attempt_0/1/stderr.log", "x");
  put("a/stdout", "x");
  EXPECT_EQ(names(folder_), (std::vector<std::string>{"/a/attempt_0/1/stderr.log", "/a/stdout", "/rank_9.log", "/rank_10.log"}));
  EXPECT_EQ(find_logs(folder_ + "/rank_9.log")->front().rank, 9);
}

TEST_F(LogFiles, ARunTellsWhichHostARankWasOn) {
  put("run/ranks/0.log", "x");
  put("run/ranks/1.log", "x");
  put("run/events.jsonl", "x");
  put("run/run.json", R"({"hosts": [{"host": "gpu01", "first_rank": 0, "ranks": 1}, {"host": "gpu02", "first_rank": 1, "ranks": 1}, 7]})");
  auto files = find_logs(folder_ + "run");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 3u);
  EXPECT_TRUE((*files)[2].name.ends_with("/events.jsonl"));
  EXPECT_EQ((*files)[1].rank, 1);
  EXPECT_EQ((*files)[1].host, "gpu02");
}

TEST_F(LogFiles, WhatIsNotThere) {
  EXPECT_EQ(find_logs(folder_ + "nothing").error().kind, base::ErrorKind::kConfig);
  put("empty/notes.md", "x");
  EXPECT_NE(find_logs(folder_ + "empty").error().message.find("no logs in"), std::string::npos);
  // A run that was refused: `why` tells it.
  ASSERT_TRUE(os::make_folders(folder_ + "20261121-073102-a3f9/ranks", 0700).ok());
  EXPECT_EQ(find_logs(folder_ + "20261121-073102-a3f9/").error().hint, "phalanx why 20261121-073102-a3f9");
  LogScan scan;
  EXPECT_FALSE(read_log(scan, {.name = folder_ + "nothing", .host = {}}).ok());
}

TEST_F(LogFiles, GzipWholeInPartsAndDamaged) {
  std::string text = "a\nb\nRuntimeError: CUDA error: out of memory\n";
  bool damaged = true;
  LogFacts facts = read(put("a.log", gzip(text)), &damaged);  // known by its bytes, not by its name
  EXPECT_FALSE(damaged);
  EXPECT_EQ(facts.files[0].lines, 3u);
  EXPECT_EQ(facts.files[0].bytes, text.size());
  facts = read(put("two.gz", gzip(text) + gzip(text)), &damaged);
  EXPECT_FALSE(damaged);
  EXPECT_EQ(facts.files[0].lines, 6u);
  std::string cut = gzip(text);
  cut.resize(cut.size() - 9);
  facts = read(put("cut.gz", cut), &damaged);
  EXPECT_TRUE(damaged);
  EXPECT_EQ(facts.events.size(), 1u);
  facts = read(put("bad.gz", "\x1f\x8bnothing of the kind"), &damaged);
  EXPECT_TRUE(damaged);
  EXPECT_TRUE(facts.events.empty());
  // What swells to 32 MiB is read in pieces.
  facts = read(put("large.gz", gzip(std::string(32 << 20, '\n') + text)), &damaged);
  EXPECT_FALSE(damaged);
  EXPECT_EQ(facts.files[0].lines, (32u << 20) + 3);
  EXPECT_EQ(facts.events.size(), 1u);
}

}  // namespace
}  // namespace phalanx::diagnosis
