#include "tune/tokenizer/tokenizer.h"

#include <algorithm>

#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {

namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

// Whether a mark stands behind another character.
bool has_inner_mark(std::string_view token) {
  for (size_t at = token.find(kMark, 1); at != std::string_view::npos; at = token.find(kMark, at + kMark.size()))
    if (at < kMark.size() || token.substr(at - kMark.size(), kMark.size()) != kMark) return true;
  return false;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerFile file)
    : normalizer_(std::move(file.normalizer)),
      byte_level_(file.byte_level),
      pre_tokenizer_(file.pre_tokenizer),
      metaspace_(std::move(file.metaspace)),
      decoder_(std::move(file.decoder)),
      byte_fallback_(file.byte_fallback),
      ignore_merges_(file.ignore_merges),
      fuse_unknown_(file.fuse_unknown),
      unknown_(file.unknown),
      before_(std::move(file.before)),
      after_(std::move(file.after)) {
  std::fill(std::begin(bytes_), std::end(bytes_), -1);
  auto keep = [&](const std::string& content, int32_t id, bool special) {
    if (tokens_.size() <= static_cast<size_t>(id)) tokens_.resize(static_cast<size_t>(id) + 1);
    const auto bytes = byte_level_ ? bytes_of_stand_ins(content) : std::nullopt;
    tokens_[static_cast<size_t>(id)] = {bytes.value_or(content), true, special};
    ids_.insert_or_assign(content, id);
  };
  for (const auto& [content, id] : file.vocabulary) {
    keep(content, id, false);
    add_word_parts(content, id);
  }
  merges_.reserve(file.merges.size());
  uint32_t rank = 0;
  cut_at_marks_ = !byte_level_ && !ignore_merges_;
  for (const TokenizerFile::Merge& merge : file.merges) {
    merges_.add(merge.left, merge.right, {rank++, merge.merged});
    if (cut_at_marks_ && has_inner_mark(tokens_[static_cast<size_t>(merge.merged)].bytes)) cut_at_marks_ = false;
  }
  if (!ids_.contains(kMark)) cut_at_marks_ = false;  // unknown ones are fused with their neighbours
  for (AddedToken& token : file.added) {
    keep(token.content, token.id, token.special);
    if (token.normalized) token.content = normalize(token.content, normalizer_);
    if (!token.content.empty()) (token.normalized ? normalized_ : raw_).add(std::move(token));
  }
}

// What words are made of: bytes or characters; and whole words, where merges can be ignored.
void Tokenizer::add_word_parts(const std::string& content, int32_t id) {
  std::optional<std::string> word = byte_level_ ? bytes_of_stand_ins(content) : std::optional(content);
  if (!word || word->empty()) return;
  if (byte_level_) {
    if (word->size() == 1) bytes_[static_cast<unsigned char>(word->front())] = id;
  } else if (const int byte = byte_of_piece(content); byte >= 0 && byte_fallback_) {
    bytes_[byte] = id;
  } else if (const Decoded first = decode_at(content, 0); first.length == content.size()) {
    if (characters_.size() <= first.code_point) characters_.resize(first.code_point + 1, -1);
    characters_[first.code_point] = id;
  }
  if (ignore_merges_) words_.insert_or_assign(std::move(*word), id);
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
    const bool at_start = part.text.data() == text.data();
    if (part.id >= 0) out.push_back(part.id);
    else if (normalizer_.empty()) encode_normalized(part.text, at_start, &out);
    else encode_normalized(normalize(part.text, normalizer_), at_start, &out);
  }
  return out;
}

std::vector<int32_t> Tokenizer::encode_whole(std::string_view text) const {
  std::vector<int32_t> out = before_, inner = encode(text);
  out.insert(out.end(), inner.begin(), inner.end());
  out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

void Tokenizer::encode_normalized(std::string_view text, bool at_start, std::vector<int32_t>* out) const {
  auto word = [&](std::string_view one) { encode_word(one, out); };
  for (const Part& part : normalized_.split(text)) {
    if (part.id >= 0) out->push_back(part.id);
    else if (byte_level_) for_each_word(part.text, pre_tokenizer_, word);
    else encode_pieces(part.text, at_start && part.text.data() == text.data(), out);
  }
}

void Tokenizer::encode_pieces(std::string_view text, bool at_start, std::vector<int32_t>* out) const {
  std::string marked;
  if (metaspace_) text = marked = with_marks(text, *metaspace_, at_start);
  auto word = [&](std::string_view one) { encode_word(one, out); };
  if (metaspace_ && metaspace_->splits) for_each_marked_word(text, metaspace_->mark, true, word);
  else if (cut_at_marks_) for_each_marked_word(text, kMark, false, word);
  else if (!text.empty()) word(text);
}

void Tokenizer::encode_word(std::string_view word, std::vector<int32_t>* out) const {
  if (ignore_merges_)
    if (auto found = words_.find(word); found != words_.end()) return out->push_back(found->second);
  thread_local std::vector<int32_t> ids;
  ids.clear();
  if (byte_level_) bytes_to_ids(word, &ids);
  else characters_to_ids(word, &ids);
  merges_.apply(&ids);
  out->insert(out->end(), ids.begin(), ids.end());
}

void Tokenizer::bytes_to_ids(std::string_view word, std::vector<int32_t>* ids) const {
  bool after_unknown = false;
  for (char c : word) {
    const int32_t id = bytes_[static_cast<unsigned char>(c)];
    if (id >= 0) ids->push_back(id);
    else if (unknown_ && !(fuse_unknown_ && after_unknown)) ids->push_back(*unknown_);
    after_unknown = id < 0;
  }
}

// An unknown character waits for a known one, which it comes before, but bytes overtake it: so does the library.
void Tokenizer::characters_to_ids(std::string_view word, std::vector<int32_t>* ids) const {
  bool waits = false;
  for (size_t at = 0; at < word.size();) {
    const Decoded one = decode_at(word, at);
    const std::string_view bytes = word.substr(at, one.length);
    at += one.length;
    const int32_t id = one.code_point < characters_.size() ? characters_[one.code_point] : -1;
    if (id >= 0) {
      if (waits) ids->push_back(*unknown_);
      waits = false;
      ids->push_back(id);
      continue;
    }
    auto known = [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; };
    if (byte_fallback_ && std::all_of(bytes.begin(), bytes.end(), known)) {
      for (char c : bytes) ids->push_back(bytes_[static_cast<unsigned char>(c)]);
    } else if (unknown_) {
      if (waits && !fuse_unknown_) ids->push_back(*unknown_);
      waits = true;
    }
  }
  if (waits) ids->push_back(*unknown_);
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  return id >= 0 && id < size() ? std::string_view(tokens_[static_cast<size_t>(id)].bytes) : std::string_view{};
}

bool Tokenizer::is_special(int32_t id) const { return id >= 0 && id < size() && tokens_[static_cast<size_t>(id)].special; }

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  if (!byte_level_) {
    std::vector<std::string> pieces;
    for (int32_t id : ids)
      if (!bytes_of(id).empty() && !(skip_special && is_special(id))) pieces.emplace_back(bytes_of(id));
    return decode_pieces(std::move(pieces), decoder_);
  }
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
