// Names of files to sets.
#include "engine/data/open_set.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/data/files/token_writer.h"
#include "ranks.h"
#include "sets.h"

using namespace phalanx;

namespace {

using namespace engine::data;
namespace fs = std::filesystem;

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

SetOptions options_of(const std::string& files) {
  SetOptions options;
  options.files = files;
  options.lines.context = 8;
  return options;
}
std::string error_of(const SetOptions& options) {
  auto set = open_set(options);
  return set.ok() ? "accepted" : set.error().render();
}

TEST(FindFiles, ListsFoldersAndGlobs) {
  ranks::TempFolder folder;
  fs::create_directories(folder / "sub/deeper");
  for (const char* name : {"b.txt", "a.txt", ".hidden", "sub/d.txt", "sub/c.txt", "x[1].txt"}) sets::write(folder / name, name);
  auto names = [&](const std::string& list) {
    std::string text;
    auto found = find_files(list);
    if (!found.ok()) return found.error().render();
    for (const std::string& path : *found) text += path.substr(folder.path().size() + 1) + " ";
    return text;
  };
  EXPECT_EQ(names(folder.path()), "a.txt b.txt x[1].txt ");
  EXPECT_EQ(names(folder / "sub"), "sub/c.txt sub/d.txt ");
  EXPECT_EQ(names(folder / "*.txt" + " , " + folder / "sub/d*" + "," + folder / "a.txt"), "a.txt b.txt x[1].txt sub/d.txt ");
  EXPECT_EQ(names(folder / "x[1].txt"), "x[1].txt ") << "a file of that name comes before the pattern";
  EXPECT_SAYS(names(folder / "none.txt"), "no such file");
  EXPECT_SAYS(names(folder / "*.md"), "nothing matches it");
  EXPECT_SAYS(names(folder / "su*"), "only folders match it");
  EXPECT_SAYS(names(folder / "sub/deeper"), "the folder contains no files");
  EXPECT_SAYS(names(" , "), "names no files");
}

TEST(OpenSet, FormatsByName) {
  ranks::TempFolder folder;
  sets::write(folder / "a.txt", std::string(81, 'a'));
  sets::write(folder / "b.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  sets::write(folder / "c.bin", std::string(2 * 33, '\1'));
  ASSERT_TRUE(write_byte_tokens({folder / "a.txt"}, folder / "d.tokens").ok());
  fs::copy(folder / "d.tokens", folder / "e.bin");
  auto set = open_set(options_of(folder.path()));
  ASSERT_TRUE(set.ok()) << set.error().render();
  std::string formats, items;
  for (const FileOfSet& file : set->files) {
    formats += std::string(to_text(file.format)) + " ";
    items += std::to_string(file.items) + " ";
  }
  EXPECT_EQ(formats, "text jsonl nanogpt tokens tokens ");
  EXPECT_EQ(items, "10 2 4 10 10 ");
  EXPECT_EQ(set->training->size(), 36);
  EXPECT_EQ(set->vocabulary, 0u) << "nanoGPT's files do not know theirs";
  EXPECT_EQ(set->validation, nullptr);
  EXPECT_NE(set->fingerprint(), open_set(options_of(folder / "a.txt"))->fingerprint());
}

TEST(OpenSet, ValidationIsTheEndOfEachFileOrFilesOfItsOwn) {
  ranks::TempFolder folder;
  sets::write(folder / "a.txt", std::string(1000, 'a') + std::string(1000, 'b'));
  sets::write(folder / "l.jsonl", "{\"text\": \"1\"}\n{\"text\": \"2\"}\n{\"text\": \"3\"}\n{\"text\": \"4\"}\n");
  SetOptions options = options_of(folder / "a.txt");
  options.validation = 0.5;
  auto set = open_set(options);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->training->size(), 124) << "(1000 - 1) / 8";
  EXPECT_EQ(set->validation->size(), 124);
  ItemRandom random(0, 0, 0);
  EXPECT_EQ(set->validation->get(0, random).value()[0].value[0].item<int64_t>(), 'b');
  options.files = folder / "l.jsonl";
  options.validation = 0.25;
  EXPECT_EQ(open_set(options)->validation->size(), 1);
  options.validation_files = folder / "a.txt";
  EXPECT_EQ(open_set(options)->training->size(), 4);
  EXPECT_EQ(open_set(options)->validation->size(), 249);
}

TEST(OpenSet, StreamsOfLinesOnly) {
  ranks::TempFolder folder;
  sets::write(folder / "a.txt", "a\nb\n");
  sets::write(folder / "b.jsonl", "{\"text\": \"1\"}\n");
  SetOptions options = options_of(folder / "a.txt");
  options.streaming = true;
  EXPECT_SAYS(error_of(options), "cannot be streamed");
  options.format = Format::kLines;
  EXPECT_EQ(error_of(options), "accepted");
  EXPECT_EQ(open_set(options)->training, nullptr);
  options.validation = 0.1;
  EXPECT_SAYS(error_of(options), "the end of a stream cannot be held out");
  options.validation_files = folder / "b.jsonl";
  EXPECT_EQ(open_set(options)->validation->size(), 1);
  options = options_of(folder / "b.jsonl");
  options.streaming = true;
  EXPECT_EQ(error_of(options), "accepted");
}

TEST(OpenSet, BrokenFilesAreNamed) {
  ranks::TempFolder folder;
  sets::write(folder / "short.tokens", "PHXTOKEN");
  sets::write(folder / "odd.bin", "abc");
  sets::write(folder / "empty.txt", "");
  EXPECT_SAYS(error_of(options_of(folder / "short.tokens")), "short.tokens\"\n  because it has 8 bytes");
  EXPECT_SAYS(error_of(options_of(folder / "odd.bin")), "odd.bin");
  EXPECT_SAYS(error_of(options_of(folder / "empty.txt")), "is empty");
  SetOptions options = options_of(folder / "odd.bin");
  options.format = Format::kTokens;
  EXPECT_SAYS(error_of(options), "the header alone takes 64");
}

}  // namespace
