// tokenizer.json read: the model, its added tokens and the post-processor.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/counted.h"
#include "base/try.h"
#include "base/unicode.h"
#include "tune/tokenizer/json_tree.h"

namespace phalanx::tune {
namespace {

base::Error bad(std::string why) { return bad_tokenizer(std::move(why)); }
bool is_id(const Tree& value) { return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < kMaxTokens; }

base::Status read_template(const Tree& processor, TokenizerFile* file) {
  const Tree& single = at(processor, "single");
  if (!single.is_array()) return bad("its post_processor lacks single");
  bool behind = false;
  for (const Tree& piece : single) {
    if (at(piece, "Sequence").is_object()) {
      behind = true;
      continue;
    }
    const std::string name = text_at(at(piece, "SpecialToken"), "id");
    const Tree& ids = at(at(at(processor, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array()) return bad(fmt::format("its post_processor does not define {}", base::quote(name)));
    for (const Tree& id : ids) {
      if (!is_id(id)) return bad("its post_processor has a malformed id");
      (behind ? file->after : file->before).push_back(id.get<int32_t>());
    }
  }
  return base::ok();
}

base::Status read_post_processor(const Tree& processor, TokenizerFile* file) {
  if (processor.is_null()) return base::ok();
  const std::string type = text_at(processor, "type");
  if (type == "ByteLevel") return base::ok();
  if (type == "TemplateProcessing") return read_template(processor, file);
  if (type != "Sequence" || !at(processor, "processors").is_array()) return unsupported("the post-processor", type);
  for (const Tree& one : at(processor, "processors")) {
    if (text_at(one, "type") == "Sequence") return unsupported("the post-processor", "Sequence in a Sequence");
    TRY(read_post_processor(one, file));
  }
  return base::ok();
}

base::Status check_model(const Tree& model) {
  if (!model.is_object()) return bad("it has no model");
  const std::string type = text_at(model, "type");
  if (type != "BPE" && !(type.empty() && at(model, "merges").is_array())) return unsupported("the model", type);
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (std::string value = text_at(model, affix); !value.empty()) return unsupported(affix, value);
  const Tree& dropout = at(model, "dropout");
  if (dropout.is_number() && dropout.get<double>() != 0) return unsupported("the model", "BPE with dropout");
  if (!at(model, "vocab").is_object()) return bad("its model has no vocab");
  if (!at(model, "merges").is_array()) return bad("its model has no merges");
  return base::ok();
}

using Ids = std::unordered_map<std::string_view, int32_t>;

// "a b" or ["a", "b"].
std::optional<std::pair<std::string_view, std::string_view>> halves(const Tree& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return std::pair<std::string_view, std::string_view>{merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  if (!merge.is_string()) return std::nullopt;
  std::string_view text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair{text.substr(0, space), text.substr(space + 1)};
}

base::Status read_merges(const Tree& merges, const Ids& ids, TokenizerFile* file) {
  if (merges.size() > static_cast<size_t>(kMaxTokens)) return bad(fmt::format("it has {} merges", merges.size()));
  file->merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    auto pair = halves(merges[i]);
    if (!pair) return bad(fmt::format("merge {} is not two tokens", i));
    auto left = ids.find(pair->first), right = ids.find(pair->second);
    auto merged = ids.find(std::string(pair->first) + std::string(pair->second));
    if (left == ids.end() || right == ids.end() || merged == ids.end())
      return bad(
          fmt::format("merge {} names a token that the vocabulary lacks: {} {}", i, base::quote(pair->first), base::quote(pair->second)));
    file->merges.push_back({left->second, right->second, merged->second});
  }
  return base::ok();
}

base::Status read_vocabulary(const Tree& model, TokenizerFile* file) {
  const Tree& vocabulary = at(model, "vocab");
  Ids ids;
  std::unordered_set<int32_t> seen;
  ids.reserve(vocabulary.size());
  file->vocabulary.reserve(vocabulary.size());
  for (auto it = vocabulary.begin(); it != vocabulary.end(); ++it) {
    if (!is_id(it.value())) return bad(fmt::format("token {} has a malformed id", base::quote(it.key())));
    const auto id = it.value().get<int32_t>();
    if (!seen.insert(id).second) return bad(fmt::format("id {} is given to two tokens", id));
    ids.emplace(it.key(), id);
    file->vocabulary.emplace_back(it.key(), id);
  }
  if (const std::string unknown = text_at(model, "unk_token"); !unknown.empty()) {
    auto found = ids.find(unknown);
    if (found == ids.end()) return bad(fmt::format("unk_token {} is not in the vocabulary", base::quote(unknown)));
    file->unknown = found->second;
  }
  file->fuse_unknown = true_at(model, "fuse_unk");
  file->ignore_merges = true_at(model, "ignore_merges");
  return read_merges(at(model, "merges"), ids, file);
}

base::Status read_added(const Tree& list, TokenizerFile* file) {
  if (list.is_null()) return base::ok();
  if (!list.is_array() || list.size() > static_cast<size_t>(kMaxTokens)) return bad("its added_tokens are not a list");
  std::unordered_map<int32_t, std::string> of_id;
  for (const auto& [content, id] : file->vocabulary) of_id.emplace(id, content);
  for (const Tree& one : list) {
    AddedToken token{text_at(one, "content"),     -1,
                     true_at(one, "single_word"), true_at(one, "lstrip"),
                     true_at(one, "rstrip"),      true_at(one, "normalized"),
                     true_at(one, "special")};
    if (token.content.empty() || !is_id(at(one, "id"))) return bad("an added token lacks its content or its id");
    token.id = at(one, "id").get<int32_t>();
    auto [place, fresh] = of_id.emplace(token.id, token.content);
    if (!fresh && place->second != token.content) return bad(fmt::format("id {} is given to two tokens", token.id));
    file->added.push_back(std::move(token));
  }
  return base::ok();
}

}  // namespace

base::Result<TokenizerFile> parse_tokenizer(std::string_view json) {
  if (json.size() > kMaxTokenizerBytes) return bad(base::counted("it has {} bytes; the limit is {}", json.size(), kMaxTokenizerBytes));
  const Tree tree = Tree::parse(json.begin(), json.end(), nullptr, false);
  if (!tree.is_object()) return bad("it is not a JSON object");
  for (const char* section : {"truncation", "padding"})
    if (!at(tree, section).is_null()) return bad(fmt::format("its section {} is not supported", section)).with_hint("set it to null");
  TokenizerFile file;
  TRY(check_model(at(tree, "model")));
  TRY(read_stages(tree, &file));
  file.byte_fallback = true_at(at(tree, "model"), "byte_fallback");
  if (file.byte_level && file.byte_fallback) return unsupported("the model", "byte-level BPE with byte_fallback");
  TRY(read_post_processor(at(tree, "post_processor"), &file));
  TRY(read_vocabulary(at(tree, "model"), &file));
  TRY(read_added(at(tree, "added_tokens"), &file));
  return file;
}

}  // namespace phalanx::tune
