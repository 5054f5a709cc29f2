// Files as sets: what stands in them is what comes out, and hostile ones are refused by name.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "engine/data/files/cut_files.h"
#include "engine/data/files/line_files.h"
#include "engine/data/files/mapped_file.h"
#include "engine/data/files/token_writer.h"
#include "engine/data/sets.h"
#include "engine/data/windows.h"
#include "os/files.h"
#include "ranks.h"
#include "sets.h"

using namespace phalanx;

namespace {

using namespace engine::data;
namespace fs = std::filesystem;

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

std::string read(const std::string& path) { return os::read_file(path, 64 << 20).value(); }

Sample item(const Dataset& set, int64_t index) {
  ItemRandom random(0, 0, index);
  return set.get(index, random).value();
}
std::string error(const Dataset& set, int64_t index) {
  ItemRandom random(0, 0, index);
  auto sample = set.get(index, random);
  return sample.ok() ? "accepted" : sample.error().render();
}
std::vector<int64_t> numbers(const at::Tensor& tensor) { return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()}; }

std::string open_error(const std::string& path) {
  auto file = MappedFile::open(path);
  return file.ok() ? "accepted" : file.error().render();
}

// The rank ends with a sentence that names the file, not with SIGBUS.
TEST(CutFile, IsNamedWhereItsLostPagesAreRead) {
  ranks::TempFolder folder;
  const std::string path = folder / "set.bin";
  ASSERT_TRUE(os::write_file_atomic(path, std::string(64 << 10, 'x'), 0600, os::Durable::kNo).ok());
  EXPECT_EXIT(
      {
        name_cut_files();
        auto other = MappedFile::open(path).value();
        auto file = MappedFile::open(path).value();
        if (truncate(path.c_str(), 100) != 0) _exit(1);
        volatile char c = file.bytes()[40 << 10];
        (void)c;
        _exit(0);
      },
      testing::ExitedWithCode(kCutFileExit), "cannot read the data file .*set.bin\nbecause the file was truncated");
}

TEST(CutFile, ASignalOfAnotherPageIsNotOurs) {
  EXPECT_EXIT(
      {
        name_cut_files();
        raise(SIGBUS);
        _exit(0);
      },
      // Under a sanitizer its own handler, which was there before, reports it.
      [](int status) { return WIFSIGNALED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != kCutFileExit); }, "");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  ranks::TempFolder folder;
  EXPECT_SAYS(open_error(folder / "none"), "No such file");
  EXPECT_SAYS(open_error(folder.path()), "it is a folder");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_SAYS(open_error(folder / "fifo"), "not a regular file");
  EXPECT_SAYS(open_error("/dev/zero"), "not a regular file");
  sets::write(folder / "empty", "");
  EXPECT_EQ(MappedFile::open(folder / "empty")->bytes(), "");
}

TEST(MappedFile, AFileThatShrinksIsAnErrorNotASignal) {
  ranks::TempFolder folder;
  sets::write(folder / "text", std::string(100'000, 'x'));
  auto file = sets::map(folder / "text");
  const WindowDataset set(file, {file->bytes().data(), 1, file->bytes().size()}, 0, 100'000, 100);
  EXPECT_EQ(set.size(), 999);
  EXPECT_EQ(item(set, 998)[0].value.numel(), 100);
  fs::resize_file(folder / "text", 10);
  EXPECT_SAYS(error(set, 998), "shrunk from 100000 to 10 bytes");
  fs::remove(folder / "text");
  sets::write(folder / "text", "other");
  EXPECT_TRUE(file->intact().ok()) << "a new file of the same name is none of our business";
}

TEST(TokenFile, WhatIsWrittenIsRead) {
  ranks::TempFolder folder;
  for (uint64_t vocabulary : {uint64_t{50'257}, uint64_t{65'536}, uint64_t{65'537}, uint64_t{1} << 32}) {
    auto writer = TokenWriter::create(folder / "a.tokens", vocabulary).value();
    const auto top = static_cast<int64_t>(vocabulary - 1);
    const std::vector<int64_t> first{0, 1, top, 7, 9}, second{3}, third{5, 6, top};
    writer.end_document();  // of nothing
    for (const auto& document : {first, second, third}) {
      ASSERT_TRUE(writer.add(document).ok());
      writer.end_document();
    }
    EXPECT_FALSE(fs::exists(folder / "a.tokens")) << "the name appears when the file is whole";
    ASSERT_TRUE(writer.finish().ok());
    auto file = sets::map(folder / "a.tokens");
    auto tokens = parse_token_file(file->bytes());
    ASSERT_TRUE(tokens.ok()) << tokens.error().render();
    EXPECT_EQ(tokens->header.width, vocabulary <= 65536 ? 2u : 4u);
    EXPECT_EQ(tokens->header.vocabulary, vocabulary);
    ASSERT_EQ(tokens->header.documents, 3u);
    EXPECT_EQ(tokens->document(2), 6u);
    const WindowDataset joined(file, tokens->tokens, 0, tokens->header.tokens, 2);
    ASSERT_EQ(joined.size(), 4);
    EXPECT_EQ(numbers(item(joined, 1)[0].value), (std::vector<int64_t>{top, 7}));
    EXPECT_EQ(numbers(item(joined, 3)[1].value), (std::vector<int64_t>{6, top}));
    const WindowDataset apart(file, *tokens, 0, 3, 3);
    ASSERT_EQ(apart.size(), 3) << "4 targets make windows of 3 and 1, 0 make none, 2 make one";
    EXPECT_EQ(numbers(item(apart, 0)[0].value), (std::vector<int64_t>{0, 1, top}));
    EXPECT_EQ(numbers(item(apart, 1)[1].value), (std::vector<int64_t>{9}));
    EXPECT_EQ(numbers(item(apart, 2)[1].value), (std::vector<int64_t>{6, top}));
    fs::remove(folder / "a.tokens");
  }
}

TEST(TokenFile, AnUnfinishedOneLeavesNothing) {
  ranks::TempFolder folder;
  {
    auto writer = TokenWriter::create(folder / "a.tokens", 10).value();
    ASSERT_TRUE(writer.add(std::vector<int64_t>{1, 2}).ok());
    EXPECT_SAYS(writer.add(std::vector<int64_t>{3, 10}).error().render(), "it is 10, and the vocabulary has 10");
    EXPECT_FALSE(writer.add(std::vector<int64_t>{-1}).ok());
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_FALSE(TokenWriter::create(folder / "no/a", 10).ok());
  EXPECT_FALSE(TokenWriter::create(folder / "a", 0).ok());
}

TEST(TokenFile, LiesAreFound) {
  ranks::TempFolder folder;
  sets::write(folder / "a", "hello");
  sets::write(folder / "b", "world!");
  ASSERT_TRUE(write_byte_tokens({folder / "a", folder / "b"}, folder / "t").ok());
  const std::string good = read(folder / "t");
  EXPECT_EQ(good.size(), 64u + 24 + 16);
  auto why = [&](size_t at, std::string_view bytes) {
    std::string bad = good;
    bad.replace(at, bytes.size(), bytes);
    auto file = parse_token_file(bad);
    return file.ok() ? "accepted" : file.error().render();
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(why(0, "P"), "accepted");
  EXPECT_SAYS(why(0, "X"), "does not begin with PHXTOKEN");
  EXPECT_SAYS(why(8, "\2"), "version 2");
  EXPECT_SAYS(why(12, "\3"), "3 bytes per token");
  EXPECT_SAYS(why(12, "\4"), "do not make its");
  EXPECT_SAYS(why(16, "\xff\xff\xff\xff\xff\xff\xff\xff"), "do not make its");
  EXPECT_SAYS(why(24, "\1"), "do not make its");
  EXPECT_SAYS(why(24, "\0\0\0\0\0\0\0\x20"sv), "do not make its");
  EXPECT_SAYS(why(50, "x"), "byte 50 of the header is not 0");
  EXPECT_SAYS(why(64 + 24, "\1"), "the first document begins at token 1");
  EXPECT_SAYS(why(64 + 32, "\0"sv), "document 1 begins at token 0, not after 0");
  EXPECT_SAYS(why(64 + 32, "\x0b"), "document 1 begins at token 11 of 11");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_token_file(std::string_view(good).substr(0, size)).ok()) << size;
  EXPECT_FALSE(parse_token_file(good + "x").ok());
  EXPECT_FALSE(parse_nanogpt_file("abc").ok());
  EXPECT_EQ(parse_nanogpt_file("\1\0\2\1"sv)->tokens.at(1), 258);
}

const LineFormat kJson{true, {"text", ""}, 64};
const LineFormat kDialogue{true, {"answer", "question"}, 8};

LineDataset lines_of(const std::string& path, const LineFormat& format) {
  auto file = sets::map(path);
  auto index = std::make_shared<std::vector<uint64_t>>(index_lines(*file));
  return {file, index, 0, index->size(), format};
}

TEST(Lines, RecordsBecomeItems) {
  ranks::TempFolder folder;
  sets::write(folder / "a.jsonl", "{\"text\": \"abc\"}\r\n\n  \n{\"id\": 1, \"text\": \"\"}\n{\"text\": \"\xc3\xa9\"}");
  const LineDataset set = lines_of(folder / "a.jsonl", kJson);
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(numbers(item(set, 0)[0].value), (std::vector<int64_t>{'a', 'b'}));
  EXPECT_EQ(numbers(item(set, 0)[1].value), (std::vector<int64_t>{'b', 'c'}));
  EXPECT_EQ(item(set, 1)[0].value.numel(), 0);
  EXPECT_EQ(numbers(item(set, 2)[1].value), (std::vector<int64_t>{0xa9}));
  EXPECT_EQ(set.place(2), folder / "a.jsonl" + ":5");
  sets::write(folder / "d.jsonl", "{\"question\": \"1+1\", \"answer\": \"two\"}\n{\"question\": \"0123456789\", \"answer\": \"x\"}\n");
  const LineDataset dialogue = lines_of(folder / "d.jsonl", kDialogue);
  EXPECT_EQ(numbers(item(dialogue, 0)[0].value), (std::vector<int64_t>{'1', '+', '1', 't', 'w'}));
  EXPECT_EQ(numbers(item(dialogue, 0)[1].value), (std::vector<int64_t>{-100, -100, 't', 'w', 'o'}));
  EXPECT_EQ(numbers(item(dialogue, 1)[1].value), std::vector<int64_t>(8, -100)) << "cut at the context";
  const LineDataset plain = lines_of(folder / "a.jsonl", {false, {}, 4});
  EXPECT_EQ(numbers(item(plain, 0)[0].value), (std::vector<int64_t>{'{', '"', 't', 'e'}));
}

TEST(Lines, BadOnesAreNamedByFileAndLine) {
  ranks::TempFolder folder;
  const std::string path = folder / "bad.jsonl";
  sets::write(path,
              std::string("{\"text\": \"ok\"}\n\n{\"text\": 5}\n[1]\n{\"txt\": \"a\", \"b\": 1}\n{\"text\": \"\xff\"}\n{\"text\": \"a") +
                  std::string(1, '\0') + "\"}\n{\"text\": \"open\n" + std::string(100, '[') + "\n" + "{\"text\": \"" +
                  std::string(kMaxLineBytes, 'x') + "\"}\n{\"text\": \"last\"}");
  const LineDataset set = lines_of(path, kJson);
  ASSERT_EQ(set.size(), 10);
  EXPECT_EQ(item(set, 0)[0].value.numel(), 1);
  EXPECT_SAYS(error(set, 1), path + ":3: malformed line");
  EXPECT_SAYS(error(set, 1), "its field \"text\" is number, not text");
  EXPECT_SAYS(error(set, 2), path + ":4");
  EXPECT_SAYS(error(set, 2), "it is array");
  EXPECT_SAYS(error(set, 3), "it has no field \"text\"; its fields are \"txt\", \"b\"");
  EXPECT_SAYS(error(set, 4), "it is not UTF-8");
  EXPECT_SAYS(error(set, 5), "not valid JSON");
  EXPECT_SAYS(error(set, 6), path + ":8: ");
  EXPECT_SAYS(error(set, 7), "nested deeper");
  EXPECT_SAYS(error(set, 8), "longer than 16777216 bytes");
  EXPECT_EQ(item(set, 9)[0].value.numel(), 3);
}

TEST(Lines, ALineOfAGigabyteTakesNoMemory) {
  ranks::TempFolder folder;
  const std::string path = folder / "huge.jsonl";
  sets::write(path, "{\"text\": \"");
  fs::resize_file(path, uint64_t{1} << 30);  // a hole: one line of NUL bytes
  const LineDataset set = lines_of(path, kJson);
  ASSERT_EQ(set.size(), 1);
  EXPECT_SAYS(error(set, 0), path + ":1: ");
  EXPECT_SAYS(error(set, 0), "longer than");
}

std::vector<std::string> all_of(LineStream& stream) {
  std::vector<std::string> items;
  while (auto ticket = stream.next().value()) {
    ItemRandom random(0, 0, 0);
    const Sample sample = stream.load(*ticket, random).value();
    std::string text;
    for (int64_t token : numbers(sample[0].value)) text.push_back(static_cast<char>(token));
    items.push_back(text);
  }
  return items;
}

LineStream some_stream(const ranks::TempFolder& folder, int64_t buffer) {
  std::string a, b;
  for (int i = 0; i < 30; ++i) a += fmt::format("a{}.\n", i);
  for (int i = 0; i < 50; ++i) b += fmt::format("b{}.\n\n", i);
  if (!fs::exists(folder / "a")) {  // what is mapped must not be cut short
    sets::write(folder / "a", a);
    sets::write(folder / "b", b);
    sets::write(folder / "c", "");
  }
  return {{sets::map(folder / "a"), sets::map(folder / "c"), sets::map(folder / "b")}, {false, {}, 16}, buffer};
}

TEST(LineStream, MixesInABoundedBufferAndLosesNothing) {
  ranks::TempFolder folder;
  LineStream plain = some_stream(folder, 0);
  plain.start(1, 0);
  const auto in_order = all_of(plain);
  ASSERT_EQ(in_order.size(), 80u);
  EXPECT_EQ(in_order[0], "a0");
  EXPECT_EQ(in_order[79], "b49");
  LineStream mixed = some_stream(folder, 10);
  mixed.start(1, 0);
  const auto first = all_of(mixed);
  EXPECT_NE(first, in_order);
  EXPECT_EQ(std::multiset<std::string>(first.begin(), first.end()), std::multiset<std::string>(in_order.begin(), in_order.end()));
  for (size_t i = 0; i < first.size(); ++i) {
    const auto before = static_cast<size_t>(std::find(in_order.begin(), in_order.end(), first[i]) - in_order.begin());
    EXPECT_LT(before, i + 10) << "no item comes before it was read";
  }
  mixed.start(1, 0);
  EXPECT_EQ(all_of(mixed), first);
  mixed.start(1, 1);
  EXPECT_NE(all_of(mixed), first) << "another epoch, another order";
}

TEST(LineStream, StepsAndPositionsHoldForEveryNumberOfRanksAndWorkers) {
  ranks::TempFolder folder;
  auto loader = [&](int world, int rank, int workers, Remainder remainder) {
    LoaderOptions options;
    options.plan = {.world = world, .rank = rank, .rows = 12 / world, .shuffle = true, .seed = 4, .remainder = remainder};
    options.workers = workers;
    return StepLoader::create(std::make_shared<LineStream>(some_stream(folder, 7)), options).value();
  };
  for (Remainder remainder : {Remainder::kDrop, Remainder::kKeep}) {
    auto whole = loader(1, 0, 0, remainder);
    std::vector<std::string> texts;
    std::vector<base::Json> states{whole->state()};
    std::vector<int64_t> rows;
    const int per_epoch = remainder == Remainder::kDrop ? 6 : 7;
    for (int i = 0; i < 3 * per_epoch; ++i) {
      const Step step = whole->next().value();
      EXPECT_EQ(step.last_of_epoch, i % per_epoch == per_epoch - 1);
      EXPECT_EQ(step.epoch, i / per_epoch);
      rows.push_back(step.rows);
      texts.push_back(sets::to_text(step));
      states.push_back(base::parse_json(base::to_text(whole->state())).value());
    }
    for (int workers : {1, 3}) {
      auto other = loader(1, 0, workers, remainder);
      for (size_t i = 0; i < texts.size(); ++i) {
        ASSERT_TRUE(other->restore(states[i]).ok());
        EXPECT_EQ(other->state(), states[i]);
        EXPECT_EQ(sets::to_text(other->next().value()), texts[i]) << i;
      }
    }
    for (int world : {2, 3}) {
      std::vector<std::unique_ptr<StepLoader>> parts;
      for (int rank = 0; rank < world; ++rank) {
        parts.push_back(loader(world, rank, 2, remainder));
        ASSERT_TRUE(parts.back()->restore(states[3]).ok());
      }
      for (size_t i = 3; i < texts.size(); ++i) {
        int64_t sum = 0;
        for (auto& part : parts) {
          sum += part->next().value().rows;
          EXPECT_EQ(part->state(), states[i + 1]) << "the position is the same on all ranks";
        }
        EXPECT_EQ(sum, rows[i]);
      }
    }
  }
}

TEST(LineStream, HostilePositionsAreRefused) {
  ranks::TempFolder folder;
  LineStream stream = some_stream(folder, 7);
  stream.start(4, 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(stream.next().ok());
  const base::Json good = stream.mark()();
  const auto rest = all_of(stream);
  auto refused = [&](auto change) {
    base::Json bad = good;
    change(bad);
    return !stream.seek(bad).ok();
  };
  EXPECT_TRUE(refused([](auto& j) { j["file"] = 4; }));
  EXPECT_TRUE(refused([](auto& j) { j["offset"] = 1'000'000; }));
  EXPECT_TRUE(refused([](auto& j) { j["offset"] = -1; }));
  EXPECT_TRUE(refused([](auto& j) { j["size"] = 8; }));
  EXPECT_TRUE(refused([](auto& j) { j["buffer"][0] = 5; }));
  EXPECT_TRUE(refused([](auto& j) { j["buffer"][0][1] = 3; }));
  EXPECT_TRUE(refused([](auto& j) { j["buffer"][0][2] = "x"; }));
  EXPECT_TRUE(refused([](auto& j) {
    for (int i = 0; i < 8; ++i) j["buffer"].push_back(base::Json::array({0, 0, 0}));
  }));
  EXPECT_TRUE(refused([](auto& j) { j.erase("random"); }));
  EXPECT_TRUE(refused([](auto& j) { j = 1; }));
  ASSERT_TRUE(stream.seek(good).ok());
  EXPECT_EQ(all_of(stream), rest);
}

TEST(LineStream, PadIsRefused) {
  ranks::TempFolder folder;
  LoaderOptions options;
  options.plan.remainder = Remainder::kPad;
  auto loader = StepLoader::create(std::make_shared<LineStream>(some_stream(folder, 0)), options);
  EXPECT_SAYS(loader.error().render(), "a stream cannot be padded");
  options.plan.remainder = Remainder::kDrop;
  options.plan.rows = 81;
  loader = StepLoader::create(std::make_shared<LineStream>(some_stream(folder, 0)), options);
  EXPECT_SAYS(loader.error().render(), "too short for one step");
}

}  // namespace
