// Characters as tokenizers see them: Unicode classes and normal forms through utf8proc, and the alphabet of byte-level BPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::tune {

enum class NormalForm { kNone, kNfc, kNfd, kNfkc, kNfkd };

// What the patterns of pre-tokenizers ask: \p{L}, \p{N}, \s (Unicode White_Space), anything else.
enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };
CharacterClass class_of(uint32_t code_point);
// \w of Rust's regex crate: alphabetic, marks, decimal numbers, connector punctuation, join controls.
bool is_word_character(uint32_t code_point);

// `text` must be well-formed UTF-8. Text that the form cannot change is returned without a look at its characters.
std::string normalize(std::string_view text, NormalForm form);

// Each maximal malformed part becomes one U+FFFD, as in Rust's String::from_utf8_lossy.
std::string replace_malformed(std::string_view bytes);

// A character of well-formed UTF-8 at `at`, and its length in bytes.
struct Decoded {
  uint32_t code_point;
  size_t length;
};
Decoded decode_at(std::string_view text, size_t at);

// The 256 printable characters that stand for bytes in the vocabularies of byte-level BPE (GPT-2's bytes_to_unicode): the bytes of a
// token. Nothing if a character is not one of them.
std::optional<std::string> bytes_of_stand_ins(std::string_view token);

}  // namespace phalanx::tune
