// tokenizer.json read: what is done to a text before it is merged, and to pieces afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "base/unicode.h"
#include "tune/tokenizer/json_tree.h"

namespace phalanx::tune {
namespace {

constexpr size_t kDeepest = 4, kMostSteps = 64, kMostGrowth = 64, kMaxMark = 64;

base::Status read_text(const Tree& object, const char* key, const char* what, std::string* out) {
  *out = text_at(object, key);
  return out->empty() ? bad_tokenizer(fmt::format("{} lacks {}", what, key)) : base::ok();
}

// Replace of the normalizer and of the decoder: one fixed text by another.
base::Status read_replace(const Tree& step, const char* what, std::string* from, std::string* to) {
  TRY(read_text(at(step, "pattern"), "String", what, from));
  *to = text_at(step, "content");
  return base::ok();
}

// How many times as long replacements can make a text, one after another: "a" by "aa", again and again, would fill any memory.
template <class Steps>
base::Status check_growth(const Steps& steps) {
  size_t growth = 1;
  for (const auto& step : steps) {
    if (!step.text.empty()) growth *= std::max<size_t>((step.by.size() + step.text.size() - 1) / step.text.size(), 1);
    if (growth > kMostGrowth || step.text.size() > kMaxMark) return bad_tokenizer("its replacements make a text too long");
  }
  return base::ok();
}

base::Status read_normalizer(const Tree& normalizer, size_t depth, NormalizerSteps* out) {
  if (normalizer.is_null()) return base::ok();
  const std::string type = text_at(normalizer, "type");
  if (type == "Sequence" && at(normalizer, "normalizers").is_array() && depth < kDeepest) {
    for (const Tree& one : at(normalizer, "normalizers")) TRY(read_normalizer(one, depth + 1, out));
    return base::ok();
  }
  NormalizerStep step;
  if (type == "NFC") step.form = NormalForm::kNfc;
  else if (type == "NFD") step.form = NormalForm::kNfd;
  else if (type == "NFKC") step.form = NormalForm::kNfkc;
  else if (type == "NFKD") step.form = NormalForm::kNfkd;
  else if (type == "Prepend") step.kind = NormalizerStep::Kind::kPrepend;
  else if (type == "Replace") step.kind = NormalizerStep::Kind::kReplace;
  else return unsupported("the normalizer", type);
  if (type == "Prepend") TRY(read_text(normalizer, "prepend", "Prepend of its normalizer", &step.text));
  if (type == "Replace") TRY(read_replace(normalizer, "Replace of its normalizer", &step.text, &step.by));
  out->push_back(std::move(step));
  return out->size() <= kMostSteps ? base::ok() : bad_tokenizer("its normalizer has too many steps");
}

std::optional<SplitBehavior> behavior_of(std::string_view name) {
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {{"Removed", SplitBehavior::kRemoved},
                                                                   {"Isolated", SplitBehavior::kIsolated},
                                                                   {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
                                                                   {"MergedWithNext", SplitBehavior::kMergedWithNext},
                                                                   {"Contiguous", SplitBehavior::kContiguous}};
  for (const auto& [known, behavior] : kNames)
    if (known == name) return behavior;
  return std::nullopt;
}

base::Status read_split(const Tree& stage, PreTokenizer* out) {
  const std::string regex = text_at(at(stage, "pattern"), "Regex"), text = text_at(at(stage, "pattern"), "String");
  const std::string name = text_at(stage, "behavior");
  const bool invert = true_at(stage, "invert");
  const auto behavior = behavior_of(name);
  if (!behavior) return unsupported("the split", name);
  if (regex.empty() == text.empty()) return bad_tokenizer("Split of its pre_tokenizer lacks a pattern");
  // Isolated or inverted, a known pattern gives the same words: every part of a text matches it.
  const auto known =
      *behavior == SplitBehavior::kIsolated || (*behavior == SplitBehavior::kRemoved && invert) ? known_pattern(regex) : std::nullopt;
  if (known) {
    out->stages.push_back({.pattern = known});
    return base::ok();
  }
  TRY_ASSIGN(auto compiled, SplitRegex::compile(regex.empty() ? text : regex, regex.empty(), *behavior, invert));
  out->stages.push_back({.regex = std::move(compiled)});
  return base::ok();
}

// One stage, or a Sequence of them: Digits, Split, and ByteLevel, which has to come last.
base::Status read_stage(const Tree& stage, PreTokenizer* out, bool* byte_level) {
  const std::string type = text_at(stage, "type");
  if (*byte_level) return bad_tokenizer("a stage of its pre_tokenizer follows ByteLevel");
  if (out->stages.size() == kMostSteps) return bad_tokenizer("its pre_tokenizer has too many stages");
  if (type == "Digits") {
    out->stages.push_back({true_at(stage, "individual_digits") ? PreTokenizer::Digits::kSingle : PreTokenizer::Digits::kRuns});
    return base::ok();
  }
  if (type == "Split") return read_split(stage, out);
  if (type != "ByteLevel") return unsupported("the pre-tokenizer", type);
  *byte_level = true;
  out->add_prefix_space = true_at(stage, "add_prefix_space");
  // The library would give each part of a text a space of its own, which no published model asks for.
  if (out->add_prefix_space && !out->stages.empty())
    return unsupported("the pre-tokenizer", "Split or Digits followed by ByteLevel with add_prefix_space");
  const Tree& use_regex = at(stage, "use_regex");
  if (!use_regex.is_boolean() || use_regex.get<bool>()) out->stages.push_back({.pattern = SplitPattern::kGpt2});
  return base::ok();
}

base::Status read_metaspace(const Tree& stage, Metaspace* out) {
  if (std::string mark = text_at(stage, "replacement"); !mark.empty() && mark.size() <= kMaxMark) out->mark = mark;
  const std::string scheme = text_at(stage, "prepend_scheme");
  const Tree &older = at(stage, "add_prefix_space"), &splits = at(stage, "split");
  if (scheme == "first") out->prepend = Metaspace::Prepend::kFirst;
  else if (scheme == "never" || (scheme.empty() && older.is_boolean() && !older.get<bool>())) out->prepend = Metaspace::Prepend::kNever;
  else if (!scheme.empty() && scheme != "always") return unsupported("the prepend_scheme", scheme);
  out->splits = !splits.is_boolean() || splits.get<bool>();
  return base::ok();
}

bool replaces_spaces(const NormalizerSteps& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const NormalizerStep& one) {
    return one.kind == NormalizerStep::Kind::kReplace && one.text == " " && one.by.find(' ') == std::string::npos;
  });
}

// Without ByteLevel: nothing, Metaspace, or a split at spaces (Gemma), of which the normalizer has left none.
base::Status read_piece_stage(const Tree& stage, TokenizerFile* file) {
  const std::string type = text_at(stage, "type");
  if (type == "Split" && text_at(at(stage, "pattern"), "String") == " " && replaces_spaces(file->normalizer)) return base::ok();
  if (type != "Metaspace" || file->metaspace) return unsupported("a pre-tokenizer without ByteLevel, but with", type);
  return read_metaspace(stage, &file->metaspace.emplace());
}

bool is_byte_level(const Tree& stage) { return text_at(stage, "type") == "ByteLevel"; }

// The stages of a Sequence, which may have others in it.
void list_stages(const Tree& tree, size_t depth, std::vector<Tree>* out) {
  if (text_at(tree, "type") != "Sequence" || !at(tree, "pretokenizers").is_array() || depth == kDeepest) {
    if (tree.is_object()) out->push_back(tree);
    return;
  }
  for (const Tree& one : at(tree, "pretokenizers")) list_stages(one, depth + 1, out);
}

base::Status read_pre_tokenizer(const Tree& tree, TokenizerFile* file) {
  std::vector<Tree> stages;
  list_stages(tree, 0, &stages);
  file->byte_level = std::any_of(stages.begin(), stages.end(), is_byte_level);
  bool byte_level = false;
  for (const Tree& stage : stages)
    TRY(file->byte_level ? read_stage(stage, &file->pre_tokenizer, &byte_level) : read_piece_stage(stage, file));
  return base::ok();
}

base::Status read_decoder_step(const Tree& decoder, size_t depth, std::vector<DecoderStep>* out) {
  using enum DecoderStep::Kind;
  const std::string type = text_at(decoder, "type");
  if (type == "Sequence" && at(decoder, "decoders").is_array() && depth < kDeepest) {
    for (const Tree& one : at(decoder, "decoders")) TRY(read_decoder_step(one, depth + 1, out));
    return base::ok();
  }
  DecoderStep step;
  if (type == "Replace") {
    step.kind = kReplace;
    TRY(read_replace(decoder, "Replace of its decoder", &step.text, &step.by));
  } else if (type == "ByteFallback") {
    step.kind = kByteFallback;
  } else if (type == "Strip") {
    step.kind = kStrip;
    TRY(read_text(decoder, "content", "Strip of its decoder", &step.text));
    for (auto [key, to] : {std::pair{"start", &step.start}, {"stop", &step.stop}})
      if (at(decoder, key).is_number_integer()) *to = std::clamp<int64_t>(at(decoder, key).get<int64_t>(), 0, 1 << 20);
  } else if (type == "Metaspace") {
    Metaspace marks;
    TRY(read_metaspace(decoder, &marks));
    step = {kMetaspace, marks.mark, "", marks.prepend == Metaspace::Prepend::kNever ? 0 : 1, 0};
  } else if (type != "Fuse") {
    return unsupported("the decoder", type);
  }
  out->push_back(std::move(step));
  return out->size() <= kMostSteps ? base::ok() : bad_tokenizer("its decoder has too many steps");
}

base::Status read_decoder(const Tree& decoder, TokenizerFile* file) {
  if (!file->byte_level) return read_decoder_step(decoder, 0, &file->decoder);
  if (text_at(decoder, "type") == "Sequence" && at(decoder, "decoders").is_array() && at(decoder, "decoders").size() == 1)
    return read_decoder(at(decoder, "decoders")[0], file);
  if (!is_byte_level(decoder)) return unsupported("the decoder", text_at(decoder, "type"));
  return base::ok();
}

}  // namespace

base::Error bad_tokenizer(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "cannot use tokenizer.json").because(std::move(why));
}
base::Error unsupported(std::string_view what, std::string_view value) {
  return bad_tokenizer(fmt::format("{} {} is not supported", what, base::quote(value)))
      .with_hint("BPE is supported: byte-level as in GPT-2, Llama 3 and Qwen, and SentencePiece's as in Llama 2, Mistral, Gemma and Phi-3");
}

const Tree& at(const Tree& object, const char* key) {
  static const Tree kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}
std::string text_at(const Tree& object, const char* key) {
  const Tree& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}
bool true_at(const Tree& object, const char* key) {
  const Tree& value = at(object, key);
  return value.is_boolean() && value.get<bool>();
}

base::Status read_stages(const Tree& tokenizer, TokenizerFile* file) {
  TRY(read_normalizer(at(tokenizer, "normalizer"), 0, &file->normalizer));
  TRY(check_growth(file->normalizer));
  TRY(read_pre_tokenizer(at(tokenizer, "pre_tokenizer"), file));
  TRY(read_decoder(at(tokenizer, "decoder"), file));
  return check_growth(file->decoder);
}

}  // namespace phalanx::tune
