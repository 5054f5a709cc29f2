#include "logs/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace logs {
namespace {

constexpr std::array<std::string_view, 17> kSecretWords = {
    "token",     "secret",      "password",   "passwd",        "passphrase", "api_key", "apikey",     "api-key",    "access_key",
    "accesskey", "private_key", "credential", "authorization", "auth_key",   "cookie",  "access-key", "private-key"};
// Words that hold a secret's name and are none: counts of training, not keys.
constexpr std::array<std::string_view, 10> kHarmless = {"tokens",       "tokenizer", "token_id",  "tokenized", "token_type",
                                                        "tokens_per_s", "tokenize",  "num_token", "max_token", "token_count"};

constexpr size_t kMostValue = 16 << 10;  // a closing quote further away closes something else
constexpr size_t kNear = 256;

struct Shape {
  std::string_view start;
  size_t least;  // bytes of the rest
};
constexpr std::array<Shape, 15> kShapes = {Shape{"hf_", 20}, {"ghp_", 30}, {"gho_", 30},  {"ghs_", 30},  {"github_pat_", 30},
                                           {"glpat-", 16},   {"sk-", 20},  {"xoxb-", 16}, {"xoxp-", 16}, {"xoxa-", 16},
                                           {"AKIA", 16},     {"ASIA", 16}, {"AIza", 30},  {"eyJ", 30},   {"npm_", 30}};

bool word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }
bool token_byte(char c) { return word_byte(c) || c == '.' || c == '+' || c == '/' || c == '='; }

bool names_secret(std::string_view name) {
  std::string lower = base::to_lower(name);
  for (std::string_view harmless : kHarmless)
    if (lower.find(harmless) != std::string::npos) return false;
  for (std::string_view word : kSecretWords)
    if (lower.find(word) != std::string::npos) return true;
  return false;
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
    bool secret = whole.size() <= 128 && names_secret(whole);
    out_ += whole;
    at_ = end;
    if (secret) value();
  }

  bool is_token(std::string_view whole, size_t& end) const {
    for (const Shape& shape : kShapes) {
      if (!whole.starts_with(shape.start) || whole.size() < shape.start.size() + shape.least) continue;
      while (end < text_.size() && token_byte(text_[end])) ++end;
      return true;
    }
    return wandb_key(whole);
  }
  bool wandb_key(std::string_view whole) const {
    if (whole.size() != 40 || whole.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
    size_t from = at_ > kNear ? at_ - kNear : 0;
    std::string before = base::to_lower(text_.substr(from, at_ - from));
    size_t line = before.rfind('\n');
    return before.find("wandb", line == std::string::npos ? 0 : line) != std::string::npos;
  }

  // After the name: "=v", ": v", '": "v"', " v" of an option, with quotes and escapes of JSON in JSON.
  void value() {
    size_t i = at_;
    auto is = [&](std::string_view bytes) { return i < text_.size() && bytes.find(text_[i]) != std::string_view::npos; };
    bool option = out_.size() > 2 && option_before();
    while (is("\\\"'")) ++i;
    while (is(" \t")) ++i;
    bool assigned = is("=:");
    if (assigned) ++i;
    while (is(" \t")) ++i;
    if (!assigned && (!option || i == at_)) return;
    size_t escapes = i;
    while (is("\\")) ++i;
    escapes = i - escapes;
    size_t begin = i;
    if (is("\"'")) ++begin;
    size_t end = escapes > 0 && begin > i ? escaped_end(begin, escapes) : value_end(text_, i);
    for (std::string_view scheme : {"Bearer ", "Basic ", "token "})
      if (text_.substr(begin).starts_with(scheme)) end = value_end(text_, begin + scheme.size());
    if (end <= begin) return;
    if (!assigned && text_[begin] == '-') return;  // the next option
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
  bool option_before() const {
    size_t i = out_.size();
    while (i > 0 && word_byte(out_[i - 1])) --i;
    return out_.compare(i, 2, "--") == 0;
  }

  // https://user:pass@host: from after "://" to before '@'.
  void user_of_url() {
    out_ += "://";
    at_ += 3;
    size_t end = at_;
    while (end < text_.size() && !base::is_blank(text_[end]) && std::string_view("/@\"'<>?#").find(text_[end]) == std::string_view::npos)
      ++end;
    std::string_view user = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '@' && user.find(':') != std::string_view::npos) replace(end);
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

}  // namespace

std::string redact(std::string_view text, size_t* found) { return Redactor(text, found).run(); }

base::Json redact_json(const base::Json& json, size_t* found) {
  if (json.is_string()) return redact(json.get_ref<const std::string&>(), found);
  if (json.is_array()) {
    base::Json out = base::Json::array();
    for (size_t i = 0; i < json.size(); ++i) {
      // A command's words: "--token", "value".
      bool after_name = i > 0 && json[i].is_string() && json[i - 1].is_string() &&
                        json[i - 1].get_ref<const std::string&>().starts_with("--") &&
                        names_secret(json[i - 1].get_ref<const std::string&>()) &&
                        json[i - 1].get_ref<const std::string&>().find('=') == std::string::npos;
      if (after_name && found) ++*found;
      out.push_back(after_name ? base::Json(kRedacted) : redact_json(json[i], found));
    }
    return out;
  }
  if (!json.is_object()) return json;
  base::Json out = base::Json::object();
  for (auto it = json.begin(); it != json.end(); ++it) {
    bool secret = names_secret(it.key()) && it.value().is_string() && !it.value().get_ref<const std::string&>().empty();
    if (secret && found) ++*found;
    out[it.key()] = secret ? base::Json(kRedacted) : redact_json(it.value(), found);
  }
  return out;
}

}  // namespace logs
