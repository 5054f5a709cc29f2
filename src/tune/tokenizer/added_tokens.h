// Added tokens: texts that are cut out of the input before it is split into words, each as one id. The rules are those of the tokenizers
// library (tokenizers/src/tokenizer/added_vocabulary.rs): the leftmost match, among those the longest; single_word refuses a match beside a
// word character; lstrip and rstrip make a token swallow the spaces beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx::tune {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;  // sought in the normalized text, by its own normal form
  bool special = false;     // left out by a decoder that skips special tokens
};

// A part of a text: an added token, or (id < 0) text between them.
struct Part {
  int32_t id = -1;
  std::string_view text;
};

class AddedTokens {
 public:
  // Content must not be empty.
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }
  // `text` is well-formed UTF-8; parts are views into it. An empty text has no parts.
  std::vector<Part> split(std::string_view text) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> next;  // sorted by byte
    int32_t token = -1;
  };
  // The index of the longest token at `at`, or -1.
  int32_t longest_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
};

}  // namespace phalanx::tune
