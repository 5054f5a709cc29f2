#include "logs/line_folding.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace phalanx::logs {
namespace {

using std::chrono::milliseconds;
using wire::Stream;

std::string describe(std::span<const int> ranks) {
  std::string out;
  for (int rank : ranks) out += (out.empty() ? "" : ",") + std::to_string(rank);
  return out;
}

struct Recorder : Folder::Sink {
  void pass(int rank, Stream, std::string_view lines) override {
    passed.push_back(std::to_string(rank) + ":" + std::string(lines));
    for (char c : lines) count += c == '\n';
  }
  void folded(Stream, std::string_view line, std::span<const int> ranks, size_t times) override {
    given.push_back(std::string(line) + "x" + std::to_string(times) + " " + describe(ranks));
    count += times;
  }
  std::vector<std::string> passed, given;
  size_t count = 0;
};

os::Mono at(int64_t ms) { return {ms * 1'000'000}; }

TEST(Folder, EqualLinesOfManyRanksAreGivenOnce) {
  Folder folder(16);
  Recorder out;
  for (int rank = 0; rank < 16; ++rank) folder.lines(rank, Stream::kStdout, "loading\n", at(rank), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:loading\n"}));
  EXPECT_TRUE(out.given.empty());
  ASSERT_TRUE(folder.due());
  EXPECT_EQ(folder.due().value(), at(200));
  folder.tick(at(199), out);
  EXPECT_TRUE(out.given.empty());
  folder.tick(at(200), out);
  EXPECT_EQ(out.given, (std::vector<std::string>{"loading\nx15 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"}));
  EXPECT_FALSE(folder.due());
}

TEST(Folder, OtherLinesOfTheChunkPassInOrderAndTogether) {
  Folder folder(2);
  Recorder out;
  folder.lines(0, Stream::kStdout, "a\nb\nc\n", at(0), out);
  folder.lines(1, Stream::kStdout, "1\n2\nb\n3\n4\n", at(1), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:a\nb\nc\n", "1:1\n2\n", "1:3\n4\n"}));
  folder.flush(out);
  EXPECT_EQ(out.given, (std::vector<std::string>{"b\nx1 1"}));
}

TEST(Folder, LinesThatDifferInARankAreNotEqual) {
  Folder folder(2);
  Recorder out;
  folder.lines(0, Stream::kStdout, "rank 0 ready\n", at(0), out);
  folder.lines(1, Stream::kStdout, "rank 1 ready\n", at(0), out);
  EXPECT_EQ(out.passed.size(), 2u);
}

TEST(Folder, StdoutAndStderrAreNotEqual) {
  Folder folder(2);
  Recorder out;
  folder.lines(0, Stream::kStdout, "x\n", at(0), out);
  folder.lines(1, Stream::kStderr, "x\n", at(0), out);
  EXPECT_EQ(out.passed.size(), 2u);
}

TEST(Folder, AfterTheWindowALineIsNewAgain) {
  Folder folder(2);
  Recorder out;
  folder.lines(0, Stream::kStdout, "x\n", at(0), out);
  folder.lines(1, Stream::kStdout, "x\n", at(200), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:x\n", "1:x\n"}));
}

TEST(Folder, TheSecondTimeOfOneRankStandsForTheSecondOfTheOthers) {
  Folder folder(3);
  Recorder out;
  for (int rank = 0; rank < 3; ++rank) folder.lines(rank, Stream::kStdout, "====\nbanner\n====\n", at(rank), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:====\nbanner\n====\n"}));
  folder.flush(out);
  EXPECT_EQ(out.given, (std::vector<std::string>{"====\nx4 1,2", "banner\nx2 1,2"}));
}

TEST(Folder, ARankThatSaysItMoreOftenIsHeard) {
  Folder folder(2);
  Recorder out;
  folder.lines(0, Stream::kStdout, "x\n", at(0), out);
  folder.lines(1, Stream::kStdout, "x\nx\n", at(0), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:x\n", "1:x\n"}));
  folder.lines(0, Stream::kStdout, "x\n", at(1), out);
  EXPECT_EQ(out.passed.size(), 2u);
  folder.flush(out);
  EXPECT_EQ(out.given, (std::vector<std::string>{"x\nx2 0,1"}));
}

TEST(Folder, OneRankIsPassedThroughWhole) {
  Folder folder(1);
  Recorder out;
  folder.lines(0, Stream::kStdout, "x\nx\nx\n", at(0), out);
  EXPECT_EQ(out.passed, (std::vector<std::string>{"0:x\nx\nx\n"}));
  EXPECT_FALSE(folder.due());
}

TEST(Folder, LongLinesPass) {
  Folder folder(2);
  Recorder out;
  std::string line(Folder::kMaxFoldedBytes, 'x');
  line += '\n';
  folder.lines(0, Stream::kStdout, line, at(0), out);
  folder.lines(1, Stream::kStdout, line, at(0), out);
  EXPECT_EQ(out.passed.size(), 2u);
}

// A flood of different lines, among them equal ones: every line is accounted for, whatever is forgotten early.
TEST(Folder, NothingIsLostInAFlood) {
  Folder folder(8);
  Recorder out;
  std::mt19937 random(3);
  size_t fed = 0;
  int64_t now = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string chunk;
    for (int n = static_cast<int>(random() % 8); n >= 0; --n, ++fed)
      chunk += (random() % 3 ? "common " + std::to_string(random() % 50) : std::string(random() % 900, 'y') + std::to_string(i)) + "\n";
    folder.lines(static_cast<int>(random() % 8), Stream::kStdout, chunk, at(now), out);
    if (random() % 50 == 0) folder.tick(at(now += static_cast<int64_t>(random() % 60)), out);
  }
  folder.flush(out);
  EXPECT_EQ(out.count, fed);
  EXPECT_LT(out.passed.size(), fed / 2);
}

TEST(Folder, HeldRanksAreBounded) {
  Folder folder(512);
  Recorder out;
  for (int line = 0; line < 400; ++line)
    for (int rank = 0; rank < 512; ++rank) folder.lines(rank, Stream::kStdout, "line " + std::to_string(line) + "\n", at(0), out);
  EXPECT_FALSE(out.given.empty()) << "the oldest were given early";
  folder.flush(out);
  EXPECT_EQ(out.count, 400u * 512u);
}

}  // namespace
}  // namespace phalanx::logs
