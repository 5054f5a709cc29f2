#include "tune/tokenizer/characters.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>

#include "base/check.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

constexpr uint32_t kLastDirectByte = 0xFF;

bool is_direct(uint32_t byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF); }

// Bytes that are not printable in Latin-1 are given the characters from U+0100 on, in order.
std::array<uint32_t, 256> make_stand_ins() {
  std::array<uint32_t, 256> out{};
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte <= kLastDirectByte; ++byte) out[byte] = is_direct(byte) ? byte : next++;
  return out;
}

constexpr uint32_t kStandInEnd = 0x100 + 68;  // 68 bytes have no direct character

std::array<int16_t, kStandInEnd> make_bytes() {
  std::array<int16_t, kStandInEnd> out;
  out.fill(-1);
  const std::array<uint32_t, 256> stand_ins = make_stand_ins();
  for (size_t byte = 0; byte < stand_ins.size(); ++byte) out[stand_ins[byte]] = static_cast<int16_t>(byte);
  return out;
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

CharacterClass look_up(uint32_t code_point) {
  if (is_space(code_point)) return CharacterClass::kSpace;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return CharacterClass::kLetter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return CharacterClass::kNumber;
  return CharacterClass::kOther;
}

std::array<CharacterClass, 128> make_ascii() {
  std::array<CharacterClass, 128> out{};
  for (uint32_t c = 0; c < out.size(); ++c) out[c] = look_up(c);
  return out;
}

// The first character that each form can change is U+00A0 at the earliest; NFC changes nothing below U+0300.
bool unchanged(std::string_view text, NormalForm form) {
  if (form == NormalForm::kNone) return true;
  const unsigned char bound = form == NormalForm::kNfc ? 0xCC : 0x80;  // U+0300 is CC 80
  for (char c : text)
    if (static_cast<unsigned char>(c) >= bound) return false;
  return true;
}

int options_of(NormalForm form) {
  switch (form) {
    case NormalForm::kNfd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    default: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  }
}

// How many of the bytes at `at` belong to one malformed part: the longest start of a well-formed character, at least 1.
size_t malformed_length(std::string_view bytes, size_t at) {
  auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  const unsigned first = byte(at), second = byte(at + 1);
  size_t length = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 1;
  if (length == 1) return 1;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80, high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (second < low || second > high) return 1;
  size_t good = 2;
  while (good < length && (byte(at + good) & 0xC0U) == 0x80) ++good;
  return good;
}

}  // namespace

CharacterClass class_of(uint32_t code_point) {
  static const std::array<CharacterClass, 128> kAscii = make_ascii();
  return code_point < kAscii.size() ? kAscii[code_point] : look_up(code_point);
}

bool is_word_character(uint32_t c) {
  // Symbols with the property Other_Alphabetic: circled and squared Latin letters.
  if ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189))
    return true;
  if (c == 0x200C || c == 0x200D) return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (unchanged(text, form)) return std::string(text);
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &result,
                   static_cast<utf8proc_option_t>(options_of(form)));
  PHALANX_CHECK(length >= 0);  // only malformed text and lack of memory are refused
  std::string out(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
  std::free(result);
  return out;
}

std::string replace_malformed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const base::Character character = base::first_character(bytes.substr(at));
    if (character.valid) {
      out.append(bytes.substr(at, character.length));
      at += character.length;
    } else {
      out.append("\xEF\xBF\xBD");
      at += malformed_length(bytes, at);
    }
  }
  return out;
}

Decoded decode_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

std::optional<std::string> bytes_of_stand_ins(std::string_view token) {
  static const std::array<int16_t, kStandInEnd> kBytes = make_bytes();
  std::string out;
  for (size_t at = 0; at < token.size();) {
    const base::Character character = base::first_character(token.substr(at));
    if (!character.valid || character.code_point >= kBytes.size() || kBytes[character.code_point] < 0) return std::nullopt;
    out.push_back(static_cast<char>(kBytes[character.code_point]));
    at += character.length;
  }
  return out;
}

}  // namespace phalanx::tune
