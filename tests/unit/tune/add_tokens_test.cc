#include "tune/tokenizer/add_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx::tune {
namespace {

// Three bytes, and what the outermost object has besides.
std::string file(std::string_view more) {
  return R"({"version": "1.0", "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})" +
         std::string(more) + "}\n";
}

TEST(AddTokens, TakeTheNextIdsOrTheirOwn) {
  const std::string before = file(R"(, "added_tokens": [
    {"id": 3, "content": "<s>", "special": true}
  ])");
  auto more = add_tokens(before, {"<x>", "ab", "<s>", "<x>"}, {"<y> \"\u8bad"});
  ASSERT_TRUE(more.ok()) << more.error().cause;
  EXPECT_EQ(more->fresh, (std::vector<int32_t>{4, 5}));
  ASSERT_EQ(more->added.size(), 3u);  // "ab" keeps its id, <s> is there already
  EXPECT_EQ(more->added[1].id, 2);
  EXPECT_EQ(more->json, file(R"(, "added_tokens": [
    {"id": 3, "content": "<s>", "special": true},
    {"id":4,"content":"<x>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false},
    {"id":2,"content":"ab","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false},
    {"id":5,"content":"<y> \"训","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}
  ])"));
  auto tokenizer = Tokenizer::parse(more->json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().cause;
  EXPECT_EQ(tokenizer->encode("a<x>b<y> \"\u8bad"), (std::vector<int32_t>{0, 4, 1, 5}));
  const std::vector<int32_t> ids{4, 5, 0};
  EXPECT_EQ(tokenizer->decode(ids, true), "<x>a");
  EXPECT_EQ(add_tokens(more->json, {"<x>"}, {})->json, more->json);
}

TEST(AddTokens, WhereverTheListIs) {
  for (const char* list : {"", ", \"added_tokens\": []", ",\n\"added_tokens\" :\t[ ]", ", \"added_tokens\": null, \"padding\": null"}) {
    auto more = add_tokens(file(list), {"<x>"}, {});
    ASSERT_TRUE(more.ok()) << list;
    auto tokenizer = Tokenizer::parse(more->json);
    ASSERT_TRUE(tokenizer.ok()) << more->json;
    EXPECT_EQ(tokenizer->id_of("<x>"), 3) << list;
  }
}

TEST(AddTokens, BadInput) {
  EXPECT_FALSE(add_tokens("{}", {"<x>"}, {}).ok());
  EXPECT_EQ(add_tokens(file(""), {""}, {}).error().cause, "\"\" cannot be a token");
  EXPECT_FALSE(add_tokens(file(""), {"\xFF"}, {}).ok());
  // Of two lists the second one counts, and an escaped name is the name all the same.
  const std::string twice = R"(, "added_tokens": [], "added_tokens": [{"id": 3, "content": "<s>"}])";
  EXPECT_EQ(add_tokens(file(twice), {"<x>"}, {}).error().cause, "its added_tokens cannot be extended");
  EXPECT_EQ(add_tokens(file(R"(, "added\u005ftokens": [{"id": 3, "content": "<s>"}])"), {"<x>"}, {}).error().cause,
            "its added_tokens cannot be extended");
}

}  // namespace
}  // namespace phalanx::tune
