#include "tune/tokenizer/tokenizer.h"

#include <algorithm>

#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {

Tokenizer::Tokenizer(TokenizerFile file)
    : form_(file.form),
      pre_tokenizer_(file.pre_tokenizer),
      ignore_merges_(file.ignore_merges),
      fuse_unknown_(file.fuse_unknown),
      unknown_(file.unknown),
      before_(std::move(file.before)),
      after_(std::move(file.after)) {
  std::fill(std::begin(bytes_), std::end(bytes_), -1);
  auto keep = [&](const std::string& content, int32_t id, bool special) {
    if (tokens_.size() <= static_cast<size_t>(id)) tokens_.resize(static_cast<size_t>(id) + 1);
    tokens_[static_cast<size_t>(id)] = {bytes_of_stand_ins(content).value_or(content), true, special};
    ids_.insert_or_assign(content, id);
  };
  for (const auto& [content, id] : file.vocabulary) {
    keep(content, id, false);
    std::optional<std::string> bytes = bytes_of_stand_ins(content);
    if (!bytes) continue;
    if (bytes->size() == 1) bytes_[static_cast<unsigned char>(bytes->front())] = id;
    if (ignore_merges_) words_.insert_or_assign(std::move(*bytes), id);
  }
  merges_.reserve(file.merges.size());
  uint32_t rank = 0;
  for (const TokenizerFile::Merge& merge : file.merges) merges_.add(merge.left, merge.right, {rank++, merge.merged});
  for (AddedToken& token : file.added) {
    keep(token.content, token.id, token.special);
    if (token.normalized) token.content = normalize(token.content, form_);
    (token.normalized ? normalized_ : raw_).add(std::move(token));
  }
}

base::Result<Tokenizer> Tokenizer::parse(std::string_view json) {
  TRY_ASSIGN(TokenizerFile file, parse_tokenizer(json));
  return Tokenizer(std::move(file));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  out.reserve(text.size() / 3);
  std::string repaired;
  if (!base::is_utf8(text)) text = repaired = replace_malformed(text);
  for (const Part& part : raw_.split(text)) {
    if (part.id >= 0) out.push_back(part.id);
    else if (form_ == NormalForm::kNone) encode_normalized(part.text, &out);
    else encode_normalized(normalize(part.text, form_), &out);
  }
  return out;
}

std::vector<int32_t> Tokenizer::encode_whole(std::string_view text) const {
  std::vector<int32_t> out = before_, inner = encode(text);
  out.insert(out.end(), inner.begin(), inner.end());
  out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

void Tokenizer::encode_normalized(std::string_view text, std::vector<int32_t>* out) const {
  auto word = [&](std::string_view one) { encode_word(one, out); };
  for (const Part& part : normalized_.split(text)) {
    if (part.id >= 0) out->push_back(part.id);
    else for_each_word(part.text, pre_tokenizer_, word);
  }
}

void Tokenizer::encode_word(std::string_view word, std::vector<int32_t>* out) const {
  if (ignore_merges_)
    if (auto found = words_.find(word); found != words_.end()) return out->push_back(found->second);
  thread_local std::vector<int32_t> ids;
  ids.clear();
  bool after_unknown = false;
  for (char c : word) {
    const int32_t id = bytes_[static_cast<unsigned char>(c)];
    if (id >= 0) ids.push_back(id);
    else if (unknown_ && !(fuse_unknown_ && after_unknown)) ids.push_back(*unknown_);
    after_unknown = id < 0;
  }
  merges_.apply(&ids);
  out->insert(out->end(), ids.begin(), ids.end());
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  return id >= 0 && id < size() ? std::string_view(tokens_[static_cast<size_t>(id)].bytes) : std::string_view{};
}

bool Tokenizer::is_special(int32_t id) const { return id >= 0 && id < size() && tokens_[static_cast<size_t>(id)].special; }

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (int32_t id : ids)
    if (!skip_special || !is_special(id)) bytes += bytes_of(id);
  return base::is_utf8(bytes) ? bytes : replace_malformed(bytes);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace phalanx::tune
