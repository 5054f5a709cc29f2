// The data check finds what is broken, odd or racy, and does not grow with the set.
#include "engine/data/check.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/data/files/check_files.h"
#include "engine/data/files/token_writer.h"
#include "engine/data/windows.h"
#include "ranks.h"
#include "sets.h"

using namespace phalanx;

namespace {

using namespace engine::data;
namespace fs = std::filesystem;

const DataFinding* find(const std::vector<DataFinding>& findings, std::string_view code) {
  auto found = std::find_if(findings.begin(), findings.end(), [&](const DataFinding& one) { return one.code == code; });
  return found == findings.end() ? nullptr : &*found;
}
std::string codes(const std::vector<DataFinding>& findings) {
  std::string text;
  for (const DataFinding& finding : findings) text += fmt::format("{}×{} ", finding.code, finding.count);
  return text;
}
Sample row(std::vector<int64_t> tokens) {
  at::Tensor both = at::empty({static_cast<int64_t>(tokens.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(tokens.begin(), tokens.end(), both.data_ptr<int64_t>());
  return {{"tokens", both}, {"targets", both.clone()}};
}
WalkOptions with_workers(int workers, uint64_t vocabulary = 0, int64_t pad_multiple = 1) {
  WalkOptions options;
  options.workers = workers;
  options.vocabulary = vocabulary;
  options.pad_multiple = pad_multiple;
  return options;
}
std::shared_ptr<const Dataset> made(int64_t size, sets::Made::Function function) {
  return std::make_shared<sets::Made>(size, std::move(function));
}

TEST(Walk, AGoodSetIsClean) {
  const WalkReport report = walk(std::shared_ptr<const Dataset>(sets::ragged(10'000)), with_workers(3, 0, 4));
  EXPECT_EQ(codes(report.findings), "no_targets×1999 ragged×1 ") << "1333 items of length 1 and 666 of length 2";
  EXPECT_EQ(report.items, 10'000);
  EXPECT_EQ(report.tokens, 30'000);
  EXPECT_EQ(report.shortest, 1);
  EXPECT_EQ(report.longest, 5);
  EXPECT_EQ(report.lengths[1], 2'000);
  EXPECT_EQ(report.lengths[2], 4'000) << "2 and 3";
  EXPECT_EQ(report.lengths[3], 4'000) << "4 and 5";
  EXPECT_NE(report.findings.back().places[0].find("from 1 to 5: rows of a batch are padded to its longest, to a multiple of 4"),
            std::string::npos);
}

// The item is put together in memory that all threads share. Two threads are made to meet in there, at a few items.
TEST(Walk, ARacyItemIsFound) {
  struct Shared {
    std::atomic<int64_t> scratch{0};
    std::atomic<int> inside{0};
  };
  auto shared = std::make_shared<Shared>();
  auto set = made(64, [shared](int64_t index, ItemRandom&) -> base::Result<Sample> {
    shared->scratch = index;
    ++shared->inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(index < 4 ? 20 : 0);
    while (shared->inside < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const int64_t read = shared->scratch;
    while (index < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    --shared->inside;
    return row({read, 1});
  });
  const WalkReport report = walk(set, with_workers(2));
  const DataFinding* racy = find(report.findings, "racy_item");
  ASSERT_NE(racy, nullptr) << codes(report.findings);
  EXPECT_EQ(racy->severity, Severity::kError);
  EXPECT_EQ(find(report.findings, "unsteady_item"), nullptr) << "in one thread it is steady";
}

TEST(Walk, AnItemThatChangesIsFoundOnceAndIsNotCalledRacy) {
  auto count = std::make_shared<std::atomic<int>>(0);
  auto set = made(10, [count](int64_t index, ItemRandom&) -> base::Result<Sample> { return row({index == 7 ? ++*count : 0, 1}); });
  const WalkReport report = walk(set, with_workers(2));
  EXPECT_EQ(codes(report.findings), "unsteady_item×1 ");
  EXPECT_EQ(report.findings[0].places, std::vector<std::string>{"made item 7"});
}

TEST(Walk, BadItemsTokensAndShapes) {
  auto set = made(20, [](int64_t index, ItemRandom&) -> base::Result<Sample> {
    if (index == 3) throw std::runtime_error("broken image");
    if (index == 4) return base::fail(base::ErrorKind::kConfig, "no such record").because("the tape ends");
    if (index == 5) return row({1, 300});
    if (index == 6) return row({-7, 1});
    if (index == 7) return row({});
    if (index == 8) return Sample{{"image", at::empty({2, 2}, at::TensorOptions().dtype(at::kFloat)).zero_()}};
    return row({1, 2});
  });
  const WalkReport report = walk(set, with_workers(2, 256));
  EXPECT_EQ(codes(report.findings), "bad_item×2 outside_vocabulary×4 unlike_items×1 empty_item×1 ragged×1 ");
  EXPECT_EQ(report.findings[0].places[0], "made item 3: the dataset threw an exception: broken image");
  EXPECT_EQ(report.findings[0].places[1], "made item 4: the tape ends");
  EXPECT_EQ(find(report.findings, "outside_vocabulary")->places[0], "made item 5: tokens contain 300");
  EXPECT_EQ(find(report.findings, "outside_vocabulary")->places[3], "made item 6: targets contain -7");
  EXPECT_EQ(report.largest_token, 300);
}

TEST(Walk, BadLinesAreNamedAlsoInAStream) {
  ranks::TempFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 1000 == 999 ? "{\"text\": 1}\n" : "{\"text\": \"abc\"}\n";
  sets::write(folder / "a.jsonl", text);
  for (bool streaming : {false, true}) {
    SetOptions options;
    options.files = folder / "a.jsonl";
    options.lines.context = 8;
    options.streaming = streaming;
    const OpenedSet set = open_set(options).value();
    const WalkReport report = streaming ? walk(set.stream, with_workers(4)) : walk(set.training, with_workers(4));
    EXPECT_EQ(codes(report.findings), "bad_item×5 ");
    EXPECT_EQ(report.findings[0].places[1], folder / "a.jsonl" + ":2000: its field \"text\" is number, not text");
    EXPECT_EQ(report.items, 5000);
  }
}

TEST(Walk, SpeaksWhileItWorks) {
  int64_t calls = 0, last = 0;
  WalkOptions options;
  options.every = std::chrono::milliseconds(0);
  options.progress = [&](int64_t items, int64_t) {
    ++calls;
    last = items;
  };
  walk(std::shared_ptr<const Dataset>(sets::ragged(20'000)), options);
  EXPECT_GE(calls, 4);
  EXPECT_EQ(last, 20'000);
}

TEST(CheckFiles, NamesEveryBadFileAndDuplicates) {
  ranks::TempFolder folder;
  sets::write(folder / "a.txt", std::string(100, 'x'));
  sets::write(folder / "b.txt", std::string(100, 'y'));
  sets::write(folder / "c.txt", std::string(100, 'x'));
  sets::write(folder / "d.tokens", "PHXTOKEN");
  sets::write(folder / "e.txt", "");
  SetOptions options;
  options.lines.context = 8;
  Findings findings;
  auto good = check_files(folder.path(), options, findings);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->size(), 3u);
  EXPECT_EQ(codes(findings.sorted()), "bad_file×2 duplicate_file×1 ");
  EXPECT_EQ(findings.sorted()[1].places[0], folder / "a.txt" + " and " + folder / "c.txt");
  EXPECT_FALSE(check_files(folder / "none", options, findings).ok());
}

}  // namespace
