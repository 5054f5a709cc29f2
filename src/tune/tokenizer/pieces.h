// What tokenizers of SentencePiece's kind (Llama 2, Mistral, Gemma, Phi-3) do around the merging: they write spaces as "▁" before it, and
// turn pieces into text after it. The rules are those of the tokenizers library (tokenizers/src/normalizers, pre_tokenizers/metaspace.rs,
// decoders).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tune/tokenizer/characters.h"

namespace phalanx::tune {

struct NormalizerStep {
  enum class Kind { kForm, kPrepend, kReplace };
  Kind kind = Kind::kForm;
  NormalForm form = NormalForm::kNone;
  std::string text, by;  // kPrepend: text; kReplace: each `text` becomes `by`
};
using NormalizerSteps = std::vector<NormalizerStep>;
// `text` must be well-formed UTF-8, and so is the result. An empty text stays empty.
std::string normalize(std::string_view text, const NormalizerSteps& steps);

// Spaces become marks, and one is put in front.
struct Metaspace {
  enum class Prepend { kNever, kFirst, kAlways };  // kFirst: only at the start of the whole text
  std::string mark = "\xE2\x96\x81";
  Prepend prepend = Prepend::kAlways;
  bool splits = true;  // a word begins at every mark
};
std::string with_marks(std::string_view text, const Metaspace& how, bool at_start);

// Calls `word` with the parts of `text` that begin at marks: at each of them, or only at those that follow something else.
template <class Word>
void for_each_marked_word(std::string_view text, std::string_view mark, bool at_each, const Word& word) {
  size_t start = 0;
  for (size_t at = text.find(mark, 1); at != std::string_view::npos; at = text.find(mark, at + mark.size())) {
    const bool follows_one = at - start >= mark.size() && text.substr(at - mark.size(), mark.size()) == mark;
    if (!at_each && follows_one) continue;
    word(text.substr(start, at - start));
    start = at;
  }
  if (start < text.size()) word(text.substr(start));
}

struct DecoderStep {
  enum class Kind {
    kReplace,       // in each piece each `text` becomes `by`
    kByteFallback,  // neighbours like <0xE2> become the characters that they are together, or one U+FFFD each
    kFuse,          // all pieces become one
    kStrip,         // at most `start` times `text` at the start of a piece goes, and `stop` times at its end
    kMetaspace,     // marks become spaces, those of the first piece go; `start` 0: they stay too
  };
  Kind kind = Kind::kFuse;
  std::string text, by;
  int64_t start = 0, stop = 0;
};
std::string decode_pieces(std::vector<std::string> pieces, const std::vector<DecoderStep>& steps);

// The byte of "<0x0A>", or -1.
int byte_of_piece(std::string_view piece);

}  // namespace phalanx::tune
