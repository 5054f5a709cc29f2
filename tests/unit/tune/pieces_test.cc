// Tokenizers of SentencePiece's kind, against ids and texts of the real library (tests/data/tokenizer, by its version 0.22.2).
#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::tune {
namespace {

using base::Json;
using Ids = std::vector<int32_t>;

Json pieces_json() { return *base::parse_json(read_text(std::string(PHALANX_TEST_DATA) + "/tokenizer/pieces.json")); }

Json metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
}

// The forms in which files of this kind come.
std::map<std::string, Json> variants() {
  std::map<std::string, Json> out;
  out["llama"] = pieces_json();
  for (auto [name, split] : {std::pair{"first", false}, {"always", true}, {"never", true}}) {
    Json json = pieces_json();
    json["normalizer"] = nullptr;
    json["pre_tokenizer"] = json["decoder"] = metaspace(name, split);
    out[name] = json;
  }
  Json gemma = pieces_json();
  gemma["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  gemma["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}};
  gemma["decoder"] = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  out["gemma"] = gemma;
  Json unknown = pieces_json();
  unknown["model"]["byte_fallback"] = false;
  out["unknown"] = unknown;
  return out;
}

TEST(Pieces, IdsAndTextsOfTheRealLibrary) {
  std::map<std::string, Tokenizer> tokenizers;
  for (const auto& [name, json] : variants()) {
    auto tokenizer = Tokenizer::parse(base::to_text(json));
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().cause;
    tokenizers.emplace(name, std::move(*tokenizer));
  }
  int cases = 0;
  for (const Json& one : read_json_lines(std::string(PHALANX_TEST_DATA) + "/tokenizer/pieces.jsonl")) {
    SCOPED_TRACE(base::to_text(one));
    const Tokenizer& tokenizer = tokenizers.at(one["variant"].get<std::string>());
    const Ids ids = one["ids"].get<Ids>();
    Ids whole{1};
    whole.insert(whole.end(), ids.begin(), ids.end());
    EXPECT_EQ(tokenizer.encode(one["text"].get<std::string>()), ids);
    EXPECT_EQ(tokenizer.encode_whole(one["text"].get<std::string>()), whole);
    EXPECT_EQ(tokenizer.decode(ids), one["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, true), one["skipped"].get<std::string>());
    ++cases;
  }
  EXPECT_EQ(cases, 300);
}

// A merge over a mark inside a word forbids to cut there.
TEST(Pieces, WordsAreCutAtMarksOnlyWhereNoMergeReachesOverThem) {
  Json json = pieces_json();
  json["normalizer"] = json["post_processor"] = nullptr;
  json["added_tokens"] = Json::array();
  json["model"] = {
      {"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"▁", 2}, {"▁b", 3}, {"a▁b", 4}, {"a▁", 5}}}, {"merges", {"▁ b", "a ▁b", "a ▁"}}};
  auto tokenizer = Tokenizer::parse(base::to_text(json));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().cause;
  EXPECT_EQ(tokenizer->encode("a▁b"), (Ids{4}));
  EXPECT_EQ(tokenizer->encode("ba▁a"), (Ids{1, 5, 0}));
}

TEST(Pieces, WhatIsNotSupportedIsNamed) {
  auto refused = [](auto change) {
    Json json = pieces_json();
    change(json);
    auto result = Tokenizer::parse(base::to_text(json));
    return result.ok() ? std::string("accepted") : result.error().cause;
  };
  EXPECT_EQ(refused([](auto& json) { json["decoder"] = {{"type", "BPEDecoder"}}; }), "the decoder \"BPEDecoder\" is not supported");
  EXPECT_EQ(refused([](auto& json) { json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", "▁"}}; }),
            "Replace of its normalizer lacks String");
  EXPECT_EQ(refused([](auto& json) { json["normalizer"] = {{"type", "Prepend"}}; }), "Prepend of its normalizer lacks prepend");
  EXPECT_EQ(refused([](auto& json) { json["pre_tokenizer"] = {{"type", "Whitespace"}}; }),
            "a pre-tokenizer without ByteLevel, but with \"Whitespace\" is not supported");
  EXPECT_EQ(refused([](auto& json) { json["pre_tokenizer"] = metaspace("last", true); }), "the prepend_scheme \"last\" is not supported");
  Json growing = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 8; ++i) growing["normalizers"].push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  EXPECT_EQ(refused([&](auto& json) { json["normalizer"] = growing; }), "its replacements make a text too long");
  Json deep = {{"type", "Fuse"}};
  for (int i = 0; i < 8; ++i) deep = {{"type", "Sequence"}, {"decoders", {deep}}};
  EXPECT_EQ(refused([&](auto& json) { json["decoder"] = deep; }), "the decoder \"Sequence\" is not supported");
  Json many = {{"type", "Sequence"}, {"decoders", Json::array()}};
  for (int i = 0; i < 65; ++i) many["decoders"].push_back({{"type", "Fuse"}});
  EXPECT_EQ(refused([&](auto& json) { json["decoder"] = many; }), "its decoder has too many steps");
}

}  // namespace
}  // namespace phalanx::tune
