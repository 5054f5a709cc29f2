#include "tune/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "golden.h"

namespace phalanx::tune {
namespace {

using Ids = std::vector<int32_t>;

// 256 bytes, in the order of their stand-ins, and a few merges of them.
base::Json small_tokenizer() {
  base::Json vocabulary = base::Json::object();
  int32_t next = 0;
  for (uint32_t c = 0; c < 0x100 + 68; ++c) {
    std::string text = c < 0x80 ? std::string(1, static_cast<char>(c))
                                : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    if (bytes_of_stand_ins(text)) vocabulary[text] = next++;
  }
  base::Json merges = base::Json::array();
  for (auto [left, right] : {std::pair{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"Ġ", "hell"}, {"Ã", "©"}}) {
    merges.push_back(std::string(left) + " " + right);
    vocabulary[std::string(left) + right] = next++;
  }
  base::Json added = base::Json::array({{{"id", 300}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
                                        {{"id", 301}, {"content", "<s>x"}, {"normalized", false}, {"lstrip", true}, {"rstrip", true}},
                                        {{"id", 302}, {"content", "end"}, {"normalized", true}, {"single_word", true}}});
  return {{"added_tokens", added},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

Tokenizer parsed(const base::Json& json) {
  auto tokenizer = Tokenizer::parse(base::to_text(json));
  PHALANX_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

std::vector<std::string> words(std::string_view text, SplitPattern pattern) {
  std::vector<std::string> out;
  for_each_word(text, {.stages = {{.pattern = pattern}}}, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

using Words = std::vector<std::string>;

TEST(PreTokenizer, Gpt2) {
  EXPECT_EQ(words("Hello's WORLD'S  x  ", SplitPattern::kGpt2), (Words{"Hello", "'s", " WORLD", "'", "S", " ", " x", "  "}));
  EXPECT_EQ(words("a12 3.\n\n b", SplitPattern::kGpt2), (Words{"a", "12", " 3", ".", "\n\n", " b"}));
}

TEST(PreTokenizer, Llama3AndQwen2) {
  EXPECT_EQ(words("WE'REx'ſ 12345", SplitPattern::kLlama3), (Words{"WE", "'RE", "x", "'ſ", " ", "123", "45"}));
  EXPECT_EQ(words("12 .a(b)\n\n  c", SplitPattern::kQwen2), (Words{"1", "2", " .", "a", "(b", ")\n\n", " ", " c"}));
  EXPECT_EQ(words(" \n \n  x\xC2\xA0\xE3\x80\x80y \t", SplitPattern::kQwen2),
            (Words{" \n \n", " ", " x", "\xC2\xA0", "\xE3\x80\x80y", " \t"}));
  // A combining mark is no letter.
  EXPECT_EQ(words("e\xCC\x81 a", SplitPattern::kLlama3), (Words{"e", "\xCC\x81", " a"}));
}

TEST(PreTokenizer, SplitsOneAfterAnother) {
  // As DeepSeek's tokenizers have it: numbers by threes, then Han, then the rest, then bytes.
  base::Json json = small_tokenizer();
  const auto cut = [](const char* regex) {
    return base::Json{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
  };
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {cut("\\p{N}{1,3}"),
                             cut("[\u4E00-\u9FA5]+"),
                             cut(" ?\\p{L}+|\\s+"),
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  auto file = parse_tokenizer(base::to_text(json));
  ASSERT_TRUE(file.ok()) << file.error().cause;
  Words out;
  for_each_word("v1234\u8BAD\u7EC3 two", file->pre_tokenizer, [&](std::string_view word) { out.emplace_back(word); });
  EXPECT_EQ(out, (Words{"v", "123", "4", "\u8BAD\u7EC3", " two"}));
}

TEST(PreTokenizer, WordsAreTheText) {
  std::mt19937 random(7);
  const std::vector<std::string> pieces{"a",  "Z", "'", "s", "ll", "ſ", " ",        "  ", "\n",       "\r",
                                        "\t", "1", "Ⅷ", ".", "!",  "é", "\xCC\x81", "中", "\xC2\x85", "\xE3\x80\x80"};
  for (SplitPattern pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2})
    for (int round = 0; round < 3000; ++round) {
      std::string text, joined;
      for (size_t i = random() % 12; i > 0; --i) text += pieces[random() % pieces.size()];
      for (const std::string& word : words(text, pattern)) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text);
    }
}

TEST(Tokenizer, MergesByRankAndCutsAddedTokens) {
  const Tokenizer tokenizer = parsed(small_tokenizer());
  const int32_t hell = *tokenizer.id_of("Ġhell");
  EXPECT_EQ(tokenizer.encode(" hello"), (Ids{hell, *tokenizer.id_of("o")}));
  EXPECT_EQ(tokenizer.encode(" hell<s> hell"), (Ids{hell, 300, hell}));
  EXPECT_EQ(tokenizer.encode("o  <s>x \n o"), (Ids{*tokenizer.id_of("o"), 301, *tokenizer.id_of("o")}));  // the longest; it swallows spaces
  EXPECT_EQ(tokenizer.encode("end"), (Ids{302}));
  EXPECT_EQ(tokenizer.encode("ends").size(), 4u);                           // not a single word
  EXPECT_EQ(tokenizer.encode("e\xCC\x81"), (Ids{*tokenizer.id_of("Ã©")}));  // NFC
  EXPECT_EQ(tokenizer.decode(Ids{hell, 300, 999, -1}), " hell<s>");
  EXPECT_EQ(tokenizer.decode(Ids{hell, 300}, true), " hell");
  EXPECT_EQ(tokenizer.decode(Ids{*tokenizer.id_of("Ã")}), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer.encode("\xC3("), tokenizer.encode("\xEF\xBF\xBD("));
}

TEST(Tokenizer, LongAndShortWordsMergeAlike) {
  base::Json json = small_tokenizer();
  const Tokenizer tokenizer = parsed(json);
  std::string word;
  for (int i = 0; i < 60; ++i) word += "hell";
  EXPECT_EQ(tokenizer.encode(word), Ids(60, *tokenizer.id_of("hell")));
  EXPECT_EQ(tokenizer.encode(std::string(31, 'l')).size(), 16u);
}

TEST(Tokenizer, PostProcessorAndIgnoredMerges) {
  base::Json json = small_tokenizer();
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["xyz"] = 290;
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                            {"special_tokens", {{"<s>", {{"ids", {300}}}}}}};
  const Tokenizer tokenizer = parsed(json);
  EXPECT_EQ(tokenizer.encode("xyz"), (Ids{290}));
  EXPECT_EQ(tokenizer.encode_whole("xyz"), (Ids{300, 290}));
}

TEST(Tokenizer, WhatIsNotSupportedIsNamed) {
  auto refused = [](auto change) {
    base::Json json = small_tokenizer();
    change(json);
    auto result = Tokenizer::parse(base::to_text(json));
    return result.ok() ? std::string("accepted") : result.error().cause;
  };
  EXPECT_EQ(refused([](auto& json) { json["model"]["type"] = "Unigram"; }), "the model \"Unigram\" is not supported");
  EXPECT_EQ(refused([](auto& json) { json["normalizer"]["type"] = "Lowercase"; }), "the normalizer \"Lowercase\" is not supported");
  EXPECT_EQ(refused([](auto& json) { json["model"]["byte_fallback"] = true; }),
            "the model \"byte-level BPE with byte_fallback\" is not supported");
  EXPECT_EQ(refused([](auto& json) { json["truncation"] = {{"max_length", 8}}; }), "its section truncation is not supported");
  EXPECT_EQ(refused([](auto& json) { json["model"]["merges"].push_back("a nothing"); }),
            "merge 5 names a token that the vocabulary lacks: \"a\" \"nothing\"");
  EXPECT_EQ(refused([](auto& json) { json["model"]["vocab"]["twice"] = 3; }), "id 3 is given to two tokens");
  EXPECT_EQ(refused([](auto& json) { json["model"]["vocab"]["far"] = 1 << 30; }), "token \"far\" has a malformed id");
  EXPECT_EQ(
      refused([](auto& json) { json["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "\\d"}}}, {"behavior", "Isolated"}}; }),
      "a pre-tokenizer without ByteLevel, but with \"Split\" is not supported");
}

TEST(Tokenizer, GoldenIdsOfTheRealLibrary) {
  PHALANX_NEEDS_GOLDEN;
  int cases = 0;
  for (const char* name : {"gpt2", "llama3", "qwen2"}) {
    const std::string folder = golden_folder() + "/tokenizer/";
    auto tokenizer = Tokenizer::parse(read_text(folder + name + "/tokenizer.json"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().cause;
    for (const base::Json& one : read_json_lines(folder + name + ".jsonl")) {
      const std::string text = one["text"].get<std::string>();
      const Ids ids = one["ids"].get<Ids>();
      const Ids whole = one.contains("ids_with_special_tokens") ? one["ids_with_special_tokens"].get<Ids>() : ids;
      ASSERT_EQ(tokenizer->encode(text), ids) << name << " " << one["kind"] << " " << one["text"];
      ASSERT_EQ(tokenizer->encode_whole(text), whole) << name << " " << one["text"];
      ASSERT_EQ(tokenizer->decode(ids), one.value("decoded", text)) << name << " " << one["text"];
      ++cases;
    }
  }
  EXPECT_EQ(cases, 1200);
}

}  // namespace
}  // namespace phalanx::tune
