// BPE as tokenizer.json of the tokenizers library describes it: the same ids, exactly.
//
// A text is cut at added tokens, normalized, cut into words, and what a word is made of is merged (merges.h): its bytes (byte-level BPE:
// GPT-2, Llama 3, Qwen 2 and 3, SmolLM; pre_tokenizer.h), or its characters, and the bytes of unknown ones (SentencePiece's kind: Llama 2,
// Mistral, Gemma, Phi-3; pieces.h). What a file asks for beyond that (Unigram, WordPiece, truncation, padding) is refused by its name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tune/tokenizer/added_tokens.h"
#include "tune/tokenizer/characters.h"
#include "tune/tokenizer/merges.h"
#include "tune/tokenizer/pieces.h"
#include "tune/tokenizer/pre_tokenizer.h"

namespace phalanx::tune {

inline constexpr size_t kMaxTokenizerBytes = 256 << 20;
inline constexpr int32_t kMaxTokens = 1 << 22;

// What a file says, checked: ids are unique and below kMaxTokens, merges name tokens of the vocabulary.
struct TokenizerFile {
  struct Merge {
    int32_t left, right, merged;
  };
  NormalizerSteps normalizer;
  bool byte_level = true;
  PreTokenizer pre_tokenizer;          // byte-level
  std::optional<Metaspace> metaspace;  // not byte-level
  bool byte_fallback = false;          // not byte-level: an unknown character becomes <0xE2> and so on, if all its bytes are known
  std::vector<DecoderStep> decoder;    // not byte-level
  std::vector<std::pair<std::string, int32_t>> vocabulary;  // as written; byte-level: in stand-ins for bytes
  std::vector<Merge> merges;                                // by rank
  std::vector<AddedToken> added;
  std::vector<int32_t> before, after;  // ids that the post-processor puts around a text
  std::optional<int32_t> unknown;
  bool fuse_unknown = false;
  bool ignore_merges = false;  // a word that is in the vocabulary is that token, whatever the merges make of it
};
// Error: kConfig, which names what is malformed or unsupported.
base::Result<TokenizerFile> parse_tokenizer(std::string_view json);

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerFile file);
  static base::Result<Tokenizer> parse(std::string_view json);

  // Ids without the post-processor's. Special tokens in the text are recognised. Malformed UTF-8 is read as U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // With those that the post-processor puts around a text (Llama 3.1: bos in front).
  std::vector<int32_t> encode_whole(std::string_view text) const;

  // Well-formed UTF-8: bytes that form no character become U+FFFD. Unknown ids are left out.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // An added token's, or a token's as the vocabulary writes it.
  std::optional<int32_t> id_of(std::string_view token) const;
  // Whether a text took its pattern more steps than are allowed: what encode() gave for it is not to be used.
  bool gave_up() const { return pre_tokenizer_.gave_up(); }
  bool is_special(int32_t id) const;
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // one more than the greatest id

 private:
  struct Token {
    std::string bytes;  // not byte-level: as the vocabulary writes it
    bool known = false;
    bool special = false;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Ids = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

  void add_word_parts(const std::string& content, int32_t id);
  void encode_normalized(std::string_view text, bool at_start, std::vector<int32_t>* out) const;
  void encode_pieces(std::string_view text, bool at_start, std::vector<int32_t>* out) const;
  void encode_word(std::string_view word, std::vector<int32_t>* out) const;
  void bytes_to_ids(std::string_view word, std::vector<int32_t>* ids) const;
  void characters_to_ids(std::string_view word, std::vector<int32_t>* ids) const;
  std::string_view bytes_of(int32_t id) const;

  NormalizerSteps normalizer_;
  bool byte_level_;
  PreTokenizer pre_tokenizer_;
  std::optional<Metaspace> metaspace_;
  std::vector<DecoderStep> decoder_;
  bool byte_fallback_, ignore_merges_, fuse_unknown_;
  bool cut_at_marks_ = false;  // no merge reaches over a mark behind another character: words may be cut there
  std::optional<int32_t> unknown_;
  std::vector<int32_t> before_, after_;
  std::vector<Token> tokens_;        // by id
  Ids ids_;                          // by the text in the file
  Ids words_;                        // by bytes; only if merges can be ignored
  int32_t bytes_[256];               // -1: the vocabulary lacks the byte
  std::vector<int32_t> characters_;  // not byte-level: by code point; -1, or beyond the end: the vocabulary lacks it
  Merges merges_;
  AddedTokens raw_, normalized_;
};

}  // namespace phalanx::tune
