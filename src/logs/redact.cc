#include "logs/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "logs/escape.h"

namespace phalanx::logs {
namespace {

// Anywhere in a name.
constexpr std::array<std::string_view, 19> kSecretWords = {"token",      "secret",        "password",    "passwd",     "passphrase",
                                                           "api_key",    "apikey",        "api-key",     "access_key", "accesskey",
                                                           "credential", "authorization", "auth_key",    "cookie",     "access-key",
                                                           "accountkey", "private_key",   "private-key", "privatekey"};
// Only as a part of a name by itself, DB_PASS or dbPwd: inside a word they mean something else (bypass, design).
constexpr std::array<std::string_view, 6> kSecretParts = {"pass", "pwd", "auth", "sig", "signature", "pw"};
// Names of training that hold a secret's word.
constexpr std::array<std::string_view, 8> kHarmless = {"tokenizer", "token_id",  "tokenized", "token_type",
                                                       "tokenize",  "num_token", "max_token", "token_count"};

constexpr size_t kMostValue = 16 << 10;  // a closing quote further away closes something else
constexpr size_t kNear = 256;
constexpr size_t kLeastSignature = 16;

struct Shape {
  std::string_view start;
  size_t least;  // bytes of the rest
};
constexpr Shape kShapes[] = {{"hf_", 20},       {"api_org_", 20},    {"ghp_", 30},     {"gho_", 30},      {"ghu_", 30},  {"ghs_", 30},
                             {"ghr_", 30},      {"github_pat_", 30}, {"glpat-", 16},   {"gldt-", 16},     {"glrt-", 16}, {"glptt-", 16},
                             {"sk-", 20},       {"sk_live_", 16},    {"rk_live_", 16}, {"nvapi-", 20},    {"gsk_", 20},  {"xai-", 20},
                             {"pplx-", 20},     {"r8_", 30},         {"rpa_", 30},     {"wandb_v1_", 20}, {"pypi-", 16}, {"npm_", 30},
                             {"dckr_pat_", 16}, {"xoxb-", 16},       {"xoxp-", 16},    {"xoxa-", 16},     {"xoxs-", 16}, {"xapp-", 16},
                             {"dop_v1_", 30},   {"tskey-", 16},      {"AKIA", 16},     {"ASIA", 16},      {"AIza", 30},  {"eyJ", 30},
                             {"ya29.", 20},     {"hvs.", 20},        {"SG.", 20}};

bool word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }
bool token_byte(char c) { return word_byte(c) || c == '.' || c == '+' || c == '/' || c == '='; }

// What a name says of its value. kUnlessPlain: a secret, unless it is a number or a word like true: "tokens" counts in most logs.
enum class Speaks { kNothing, kUnlessPlain, kSignature, kSecret };

// "dbPass", "DB_PASS", "db-pass": is one part of it this word?
bool has_part(std::string_view name, std::string_view lower, std::string_view part) {
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  auto upper = [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = lower.find(part); at != std::string_view::npos; at = lower.find(part, at + 1)) {
    size_t end = at + part.size();
    bool begins = at == 0 || !letter(name[at - 1]) || (upper(name[at]) && !upper(name[at - 1]));
    bool ends = end == name.size() || !letter(name[end]) || (upper(name[end]) && !upper(name[end - 1]));
    if (begins && ends) return true;
  }
  return false;
}

Speaks speaks(std::string_view name) {
  std::string lower = base::to_lower(name);
  for (std::string_view harmless : kHarmless)
    for (size_t at; (at = lower.find(harmless)) != std::string::npos;) lower.replace(at, harmless.size(), harmless.size(), '.');
  bool counts = false;
  for (std::string_view word : kSecretWords)
    for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      bool plural = word == "token" && lower.compare(at, 6, "tokens") == 0;
      if (!plural) return Speaks::kSecret;
      counts = true;
    }
  if (counts) return Speaks::kUnlessPlain;
  if (name.size() > 4 && name.ends_with("_KEY")) return Speaks::kUnlessPlain;
  for (std::string_view part : kSecretParts)
    if (has_part(name, lower, part)) return part.starts_with("sig") ? Speaks::kSignature : Speaks::kUnlessPlain;
  return Speaks::kNothing;
}

// 4096, 1.5e9, 12k, [1, true, None, /home/me: what a count, a switch or a folder looks like.
bool is_plain(std::string_view value) {
  while (!value.empty() && std::string_view("\"'[({").find(value.front()) != std::string_view::npos) value.remove_prefix(1);
  if (value.empty() || value.front() == '/') return true;
  std::string lower = base::to_lower(value);
  for (std::string_view word : {"true", "false", "none", "null", "yes", "no", "on", "off"})
    if (lower == word) return true;
  size_t digits = std::min(lower.find_first_not_of("+-0123456789.,_e/ "), lower.size());
  if (digits == lower.size() && lower.find(',') != std::string::npos) return true;  // a list of numbers
  return std::isdigit(static_cast<unsigned char>(lower[lower[0] == '-' || lower[0] == '+' ? std::min<size_t>(1, lower.size() - 1) : 0])) &&
         lower.size() <= 24 && lower.size() - digits <= 4;
}

bool is_secret(Speaks speaks, std::string_view value) {
  switch (speaks) {
    case Speaks::kNothing: return false;
    case Speaks::kUnlessPlain: return !is_plain(value);
    case Speaks::kSignature: return value.size() >= kLeastSignature && !is_plain(value);
    case Speaks::kSecret: return true;
  }
  return true;
}

// The end of a value that begins at `at`: of a quoted one its closing quote, else the first blank or separator.
size_t value_end(std::string_view text, size_t at) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    for (size_t i = at + 1; i < std::min(text.size(), at + kMostValue) && text[i] != '\n'; ++i) {
      if (text[i] == '\\') ++i;
      else if (text[i] == text[at]) return i;
    }
  }
  size_t end = at;
  while (end < text.size() && !base::is_blank(text[end]) && std::string_view(",;\"'&)]}").find(text[end]) == std::string_view::npos &&
         text[end] != '\0')
    ++end;
  return end;
}

class Redactor {
 public:
  Redactor(std::string_view text, size_t* found) : text_(text), found_(found) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("-----BEGIN ")) pem();
      else if (word_byte(text_[at_]) && (at_ == 0 || !word_byte(text_[at_ - 1]))) word();
      else if (text_.substr(at_).starts_with("://")) user_of_url();
      else out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  void replace(size_t end) {
    out_ += kRedacted;
    at_ = end;
    if (found_) ++*found_;
  }

  // A word: a token by itself, or the name of a secret whose value follows.
  void word() {
    size_t end = at_;
    while (end < text_.size() && word_byte(text_[end])) ++end;
    std::string_view whole = text_.substr(at_, end - at_);
    if (is_token(whole, end)) return replace(end);
    size_t inner = token_within(whole);
    if (inner == 0) inner = pointed_within(whole, end);
    if (inner != 0) {
      out_ += whole.substr(0, inner);
      return replace(end);
    }
    Speaks about = whole.size() <= 128 ? speaks(whole) : Speaks::kNothing;
    if (about == Speaks::kUnlessPlain && counts_passes(whole, end)) about = Speaks::kNothing;
    out_ += whole;
    at_ = end;
    if (about != Speaks::kNothing) value(about);
  }

  // "3 pass = …" of a Chinese line of the engine: a number stands before it, and words of a language without blanks behind it. A
  // password that is typed begins with a byte of ASCII.
  bool counts_passes(std::string_view whole, size_t end) const {
    if (whole != "pass" || at_ < 2 || text_[at_ - 1] != ' ' || !std::isdigit(static_cast<unsigned char>(text_[at_ - 2]))) return false;
    if (!text_.substr(end).starts_with(" = ") || end + 3 >= text_.size()) return false;
    return (static_cast<unsigned char>(text_[end + 3]) & 0x80) != 0;
  }

  bool is_token(std::string_view whole, size_t& end) const {
    for (const Shape& shape : kShapes) {
      size_t whole_end = end;
      if (shape.start.ends_with('.'))  // goes on behind the point, where a word ends
        while (whole_end < text_.size() && token_byte(text_[whole_end])) ++whole_end;
      std::string_view seen = text_.substr(at_, whole_end - at_);
      if (!seen.starts_with(shape.start) || seen.size() < shape.start.size() + shape.least) continue;
      end = whole_end;
      while (end < text_.size() && token_byte(text_[end])) ++end;
      return true;
    }
    return wandb_key(whole);
  }
  // "my-key-hf_…", where the token is one run of letters and digits to the end of the word; 0: there is none.
  static size_t token_within(std::string_view whole) {
    size_t run = whole.find_last_of("_-");
    if (run == std::string_view::npos) return 0;
    for (const Shape& shape : kShapes) {
      size_t size = shape.start.size();
      bool fits = run + 1 > size && whole.size() - run - 1 >= shape.least && whole.substr(run + 1 - size, size) == shape.start;
      if (fits && !std::isalnum(static_cast<unsigned char>(whole[run - size]))) return run + 1 - size;
    }
    return 0;
  }
  // The same of a token with a point, "key-hvs.…": its first part ends the word.
  size_t pointed_within(std::string_view whole, size_t& end) const {
    for (const Shape& shape : kShapes) {
      std::string_view stem = shape.start.substr(0, shape.start.size() - 1);
      if (!shape.start.ends_with('.') || whole.size() <= stem.size() || !whole.ends_with(stem)) continue;
      if (end >= text_.size() || text_[end] != '.' || std::isalnum(static_cast<unsigned char>(whole[whole.size() - stem.size() - 1])))
        continue;
      size_t stop = end + 1;
      while (stop < text_.size() && token_byte(text_[stop])) ++stop;
      if (stop - end - 1 < shape.least) continue;
      end = stop;
      return whole.size() - stem.size();
    }
    return 0;
  }
  bool wandb_key(std::string_view whole) const {
    if (whole.size() != 40 || whole.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
    size_t from = at_ > kNear ? at_ - kNear : 0;
    std::string before = base::to_lower(text_.substr(from, at_ - from));
    size_t line = before.rfind('\n');
    return before.find("wandb", line == std::string::npos ? 0 : line) != std::string::npos;
  }

  // After the name: "=v", ": v", '": "v"', " v" of an option, with quotes and escapes of JSON in JSON.
  void value(Speaks about) {
    size_t i = at_;
    auto is = [&](std::string_view bytes) { return i < text_.size() && bytes.find(text_[i]) != std::string_view::npos; };
    bool option = out_.size() > 2 && (option_before() || (variable_before() && quoted_behind(at_)));
    while (is("\\\"'")) ++i;
    while (is(" \t")) ++i;
    bool assigned = is("=:");
    if (assigned) ++i;
    while (is(" \t")) ++i;
    if (!assigned && (!option || i == at_)) return;
    if (text_.substr(i).starts_with(kRedacted)) return;
    size_t escapes = i;
    while (is("\\")) ++i;
    escapes = i - escapes;
    size_t begin = i;
    if (is("\"'")) ++begin;
    size_t end = escapes > 0 && begin > i ? escaped_end(begin, escapes) : value_end(text_, i);
    if (assigned && escapes == 0 && is("[({")) end = list_end(++begin);
    for (std::string_view scheme : {"Bearer ", "Basic ", "token "})
      if (text_.substr(begin).starts_with(scheme)) end = value_end(text_, begin + scheme.size());
    if (end <= begin) return;
    if (!assigned && text_[begin] == '-') return;  // the next option
    if (!is_secret(about, text_.substr(begin, end - begin))) return;
    out_ += text_.substr(at_, begin - at_);
    replace(end);
  }
  // Of a string inside a string: its closing quote has as many backslashes before it as its opening one.
  size_t escaped_end(size_t begin, size_t escapes) const {
    std::string close(escapes, '\\');
    close += text_[begin - 1];
    std::string_view rest = text_.substr(begin, kMostValue);
    return begin + std::min({rest.find(close), rest.find('\n'), rest.size()});
  }
  // Of what stands in brackets: everything up to the closing one on this line.
  size_t list_end(size_t begin) const {
    std::string_view rest = text_.substr(begin, kMostValue);
    return begin + std::min({rest.find_first_of("])}"), rest.find('\n'), rest.size()});
  }
  bool option_before() const {
    size_t i = out_.size();
    while (i > 0 && word_byte(out_[i - 1])) --i;
    return out_.compare(i, 2, "--") == 0;
  }

  // HF_TOKEN, as a program prints it beside its value: HF_TOKEN 'hf_…'.
  bool variable_before() const {
    size_t i = out_.size();
    while (i > 0 && (std::isupper(static_cast<unsigned char>(out_[i - 1])) || std::isdigit(static_cast<unsigned char>(out_[i - 1])) ||
                     out_[i - 1] == '_'))
      --i;
    return out_.find('_', i) != std::string::npos && (i == 0 || !word_byte(out_[i - 1]));
  }
  bool quoted_behind(size_t at) const {
    size_t i = at;
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
    return i > at && i < text_.size() && (text_[i] == '\'' || text_[i] == '"');
  }

  // https://user:pass@host and https://token@host: from after "://" to the last '@' of the authority. A user alone is a login name where
  // there is ssh, and "git" everywhere.
  void user_of_url() {
    bool ssh = out_.ends_with("ssh");
    out_ += "://";
    at_ += 3;
    size_t end = at_;
    while (end < text_.size() && !base::is_blank(text_[end]) && std::string_view("/\"'<>?#").find(text_[end]) == std::string_view::npos)
      ++end;
    std::string_view authority = text_.substr(at_, end - at_);
    size_t last = authority.rfind('@');
    if (last == std::string_view::npos || last == 0) return;
    std::string_view user = authority.substr(0, last);
    bool login = user == "git" || (ssh && user.find(':') == std::string_view::npos);
    if (!login) replace(at_ + last);
  }

  void pem() {
    if (text_.substr(at_, 64).find("PRIVATE KEY-----") == std::string_view::npos) {
      out_ += text_[at_++];
      return;
    }
    replace(std::min(text_.find("-----END ", at_), text_.size()));
    if (text_.substr(at_).starts_with("-----END ")) {  // its end line is no secret, and must not be taken for a beginning
      size_t stop = text_.find("KEY-----", at_);
      at_ = stop == std::string_view::npos ? text_.size() : stop + 8;
    }
  }

  std::string_view text_;
  size_t* found_;
  size_t at_ = 0;
  std::string out_;
};

// The value of a key that speaks of a secret, whatever it is made of.
base::Json hide(const base::Json& json, Speaks about, size_t* found) {
  if (json.is_string()) {
    const std::string& value = json.get_ref<const std::string&>();
    if (value.empty() || value == kRedacted || !is_secret(about, value)) return redact(value, found);
    if (found) ++*found;
    return kRedacted;
  }
  base::Json out = json;
  if (json.is_array() || json.is_object())
    for (auto& item : out) item = hide(item, about, found);
  return out;
}

}  // namespace

bool keeps_secret(std::string_view name, std::string_view value) { return !value.empty() && is_secret(speaks(name), value); }

std::string redact(std::string_view text, size_t* found) {
  if (text.find('\x1b') == std::string_view::npos) return Redactor(text, found).run();
  // Before and after the sequences are gone: the m of a colour and the token behind it would be one word, and a sequence that was cut short
  // takes the first letter of what follows.
  std::string plain = strip_escapes(Redactor(text, found).run());
  return Redactor(plain, found).run();
}

base::Json redact_json(const base::Json& json, size_t* found) {
  if (json.is_string()) return redact(json.get_ref<const std::string&>(), found);
  if (json.is_array()) {
    base::Json out = base::Json::array();
    for (size_t i = 0; i < json.size(); ++i) {
      // A command's words: "--token", "value".
      auto text = [&](size_t at) { return std::string_view(json[at].get_ref<const std::string&>()); };
      bool after_name = i > 0 && json[i].is_string() && json[i - 1].is_string() && text(i - 1).starts_with("--") &&
                        text(i - 1).find('=') == std::string_view::npos && is_secret(speaks(text(i - 1)), text(i));
      if (after_name && found) ++*found;
      out.push_back(after_name ? base::Json(kRedacted) : redact_json(json[i], found));
    }
    return out;
  }
  if (!json.is_object()) return json;
  base::Json out = base::Json::object();
  for (auto it = json.begin(); it != json.end(); ++it) {
    Speaks about = speaks(it.key());
    out[it.key()] = about == Speaks::kNothing ? redact_json(it.value(), found) : hide(it.value(), about, found);
  }
  return out;
}

}  // namespace phalanx::logs
