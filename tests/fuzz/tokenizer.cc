// Any bytes as tokenizer.json: a tokenizer or an error. Any bytes as text: decoding gives back the text in its normal form.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/unicode.h"
#include "tune/tokenizer/add_tokens.h"
#include "tune/tokenizer/tokenizer.h"

using namespace phalanx;

namespace {

std::string in_utf8(uint32_t c) {
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

// All bytes, and merges of letters and of the bytes of "é".
tune::Tokenizer letters(tune::SplitPattern pattern) {
  tune::TokenizerFile file;
  file.normalizer = {{.form = tune::NormalForm::kNfc}};
  file.pre_tokenizer.stages = {{.pattern = pattern}};
  int32_t next = 0;
  for (uint32_t c = 0; c < 0x144; ++c)
    if (std::string text = in_utf8(c); tune::bytes_of_stand_ins(text)) file.vocabulary.emplace_back(text, next++);
  for (int32_t left = 0; left < next; ++left)
    for (int32_t right = left % 3; right < next; right += 3) {
      const int32_t merged = 256 + static_cast<int32_t>(file.merges.size());
      file.vocabulary.emplace_back(file.vocabulary[static_cast<size_t>(left)].first + file.vocabulary[static_cast<size_t>(right)].first,
                                   merged);
      file.merges.push_back({left, right, merged});
    }
  return tune::Tokenizer(std::move(file));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto read = tune::Tokenizer::parse(bytes); read.ok()) {
    const std::vector<int32_t> ids = read->encode(bytes);
    PHALANX_CHECK(base::is_utf8(read->decode(ids)));
    if (auto more = tune::add_tokens(bytes, {"<plain>"}, {"<special>"}); more.ok()) {
      auto again = tune::Tokenizer::parse(more->json);
      PHALANX_CHECK(again.ok() && again->id_of("<plain>") && again->id_of("<special>"));
      for (const tune::AddedToken& one : more->added) PHALANX_CHECK(again->id_of(one.content) == one.id);
    }
  }
  static const tune::Tokenizer kTokenizers[] = {letters(tune::SplitPattern::kGpt2), letters(tune::SplitPattern::kLlama3),
                                                letters(tune::SplitPattern::kQwen2)};
  const std::string expected = tune::normalize(tune::replace_malformed(bytes), tune::NormalForm::kNfc);
  for (const tune::Tokenizer& one : kTokenizers) PHALANX_CHECK(one.decode(one.encode(bytes)) == expected);
  return 0;
}
