#include "engine/finetune/read_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/finetune/trained_parts.h"
#include "os/files.h"
#include "tune/chat/dataset_info.h"
#include "tune/chat/labels.h"
#include "tune/chat/numpy_order.h"
#include "tune/chat/records.h"
#include "tune/tokenizer/add_tokens.h"

namespace phalanx::engine::finetune {
namespace {

using base::Json;

constexpr size_t kMaxDataBytes = size_t{64} << 30;

// A file of data, and how a record of it becomes a row.
struct DataFile {
  std::string path;
  const tune::DatasetInfo* info = nullptr;  // null: ids and labels
};

base::Error at_record(const DataFile& file, const tune::RecordReader& reader, base::Error why) {
  const std::string cause = why.cause.empty() ? why.message : why.cause;
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}, record {} (line {})", file.path, reader.record(), reader.line()))
      .because(cause);
}

base::Error wrong(std::string why) { return base::fail(base::ErrorKind::kConfig, std::move(why)); }

base::Result<std::vector<int64_t>> numbers_of(const Json& record, const char* key) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_array()) return wrong(fmt::format("{} is not a list of numbers", base::quote(key)));
  std::vector<int64_t> out;
  out.reserve(found->size());
  for (const Json& one : *found) {
    if (!one.is_number_integer()) return wrong(fmt::format("{} is not a list of whole numbers", base::quote(key)));
    out.push_back(one.get<int64_t>());
  }
  return out;
}

// Records as rows, one each; an empty one stands for a record that is left out.
class Records {
 public:
  Records(const tune::Recipe& recipe, const Text* text, int64_t vocabulary)
      : recipe_(recipe), text_(text), vocabulary_(vocabulary), rules_{recipe.cutoff_len, recipe.train_on_prompt, recipe.mask_history, {}} {
    if (text && text->chat) rules_.ending = text->chat->ending();
    if (recipe.stage == "sft" && recipe.packs() && text) --rules_.cutoff_len;  // as LLaMA-Factory has it
  }

  base::Status add(const Json& record, const DataFile& file) {
    TRY_ASSIGN(tuning::TuningRow row, row_of(record, file));
    if (text_ && text_->tokenizer->gave_up()) return wrong("the split pattern of tokenizer.json takes too many steps for its text");
    TRY(check(row.ids, row.labels));
    TRY(check(row.rejected_ids, row.rejected_labels));
    rows.push_back(std::move(row));
    return base::ok();
  }

  std::vector<tuning::TuningRow> rows;

 private:
  base::Result<tuning::TuningRow> row_of(const Json& record, const DataFile& file) const {
    if (!file.info) return tokenized(record);
    if (recipe_.stage == "pt") return plain(record, *file.info);
    if (recipe_.stage == "dpo") return pair(record, *file.info);
    TRY_ASSIGN(const auto conversation, tune::to_conversation(record, *file.info));
    if (!conversation) return tuning::TuningRow();
    return widened(tune::label(text_->chat->turns(*conversation), rules_));
  }

  static tuning::TuningRow widened(const tune::Labelled& from) {
    return {{from.ids.begin(), from.ids.end()}, {from.labels.begin(), from.labels.end()}};
  }

  base::Result<tuning::TuningRow> pair(const Json& record, const tune::DatasetInfo& info) const {
    TRY_ASSIGN(const auto preference, tune::to_preference(record, info));
    if (!preference) return tuning::TuningRow();
    const auto with = [&](const std::string& answer) {
      tune::Conversation whole = preference->prompt;
      whole.messages.push_back(answer);
      return text_->chat->turns(whole);
    };
    const tune::LabelledPair pair = tune::label_pair(with(preference->chosen), with(preference->rejected), rules_);
    tuning::TuningRow out = widened(pair.chosen), rejected = widened(pair.rejected);
    out.rejected_ids = std::move(rejected.ids);
    out.rejected_labels = std::move(rejected.labels);
    return out;
  }

  // Packed, texts are cut later, and each block has its own first token.
  base::Result<tuning::TuningRow> plain(const Json& record, const tune::DatasetInfo& info) const {
    TRY_ASSIGN(const auto text, tune::to_plain_text(record, info));
    if (!text) return tuning::TuningRow();
    const std::vector<int32_t> ids = text_->tokenizer->encode(*text);
    std::vector<int64_t> row;
    if (text_->tokens.first && !recipe_.packs()) row.push_back(*text_->tokens.first);
    row.insert(row.end(), ids.begin(), ids.end());
    row.push_back(text_->tokens.eos);
    if (!recipe_.packs()) row.resize(std::min(row.size(), static_cast<size_t>(recipe_.cutoff_len)));
    return pretrain_row(std::move(row), text_->tokens);
  }

  base::Result<tuning::TuningRow> tokenized(const Json& record) const {
    tuning::TuningRow row;
    TRY_ASSIGN(row.ids, numbers_of(record, "input_ids"));
    TRY_ASSIGN(row.labels, numbers_of(record, "labels"));
    if (row.ids.size() != row.labels.size())
      return wrong(fmt::format("input_ids has {} numbers and labels {}", row.ids.size(), row.labels.size()));
    const auto most = std::min(row.ids.size(), static_cast<size_t>(recipe_.cutoff_len));
    row.ids.resize(most);
    row.labels.resize(most);
    return row;
  }

  base::Status check(const std::vector<int64_t>& ids, const std::vector<int64_t>& labels) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t id = ids[i], target = labels[i];
      const bool target_known = target == tune::kIgnored || (target >= 0 && target < vocabulary_);
      if (id >= 0 && id < vocabulary_ && target_known) continue;
      return wrong(fmt::format("{} {} at position {} is outside the vocabulary: the model's embedding has {} rows",
                               target_known ? "id" : "label", target_known ? id : target, i, vocabulary_));
    }
    return base::ok();
  }

  const tune::Recipe& recipe_;
  const Text* text_;
  const int64_t vocabulary_;
  tune::LabelRules rules_;
};

using RowList = std::vector<tuning::TuningRow>;

// Records set aside for evaluation, as the datasets library does it: the rest is in another order then too.
void set_aside(const tune::Recipe& recipe, RowList* rows, RowList* evaluated) {
  if (recipe.val_size <= 0) return;
  const auto count = static_cast<int64_t>(rows->size());
  const double wanted = recipe.val_size >= 1 ? std::floor(recipe.val_size) : std::ceil(recipe.val_size * static_cast<double>(count));
  const int64_t aside = std::min(static_cast<int64_t>(wanted), count);
  const std::vector<int64_t> order = tune::numpy_permutation(static_cast<uint64_t>(recipe.seed), count);
  RowList rest;
  for (int64_t i = 0; i < count; ++i)
    (i < aside ? *evaluated : rest).push_back(std::move((*rows)[static_cast<size_t>(order[static_cast<size_t>(i)])]));
  *rows = std::move(rest);
}

using Progress = std::function<void(uint64_t)>;

// Each line of a .txt is a record {"text": line}.
base::Status read_lines(const std::string& content, const DataFile& file, int64_t most, int64_t* taken, Records* records,
                        const Progress& progress) {
  size_t at = 0;
  for (int64_t line = 0; at < content.size() && *taken < most; ++line, ++*taken) {
    const size_t end = std::min(content.find('\n', at), content.size());
    std::string text = content.substr(at, end - at);
    if (text.ends_with('\r')) text.pop_back();
    at = end + 1;
    const auto at_line = [&](std::string why) {
      return base::fail(base::ErrorKind::kConfig, fmt::format("{}, record {} (line {})", file.path, line, line + 1))
          .because(std::move(why));
    };
    if (!base::is_utf8(text)) return at_line("it is not UTF-8");
    if (base::Status added = records->add({{"text", text}}, file); !added.ok())
      return at_line(added.error().cause.empty() ? added.error().message : added.error().cause);
    progress(at);
  }
  return base::ok();
}

base::Status read_file(const DataFile& file, int64_t most, int64_t* taken, Records* records, const Progress& progress) {
  TRY_ASSIGN(const std::string content, os::read_file(file.path, kMaxDataBytes));
  if (file.info && file.path.ends_with(".txt")) TRY(read_lines(content, file, most, taken, records, progress));
  tune::RecordReader reader(file.info && file.path.ends_with(".txt") ? std::string_view() : content);
  while (*taken < most) {
    auto record = reader.next();
    if (!record.ok()) return at_record(file, reader, record.error());
    if (!*record) break;
    if (base::Status added = records->add(**record, file); !added.ok()) return at_record(file, reader, added.error());
    ++*taken;
    progress(reader.bytes_read());
  }
  progress(content.size());
  return base::ok();
}

bool is_data_file(const std::string& name) { return name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".txt"); }

// The files of a data set, which names one of them or a folder.
base::Result<std::vector<std::string>> files_of(const std::string& folder, const tune::DatasetInfo& info) {
  const std::string path = folder + "/" + info.file_name;
  const auto unusable = [&](std::string why) {
    return base::fail(base::ErrorKind::kConfig, fmt::format("cannot read data set {}", base::quote(info.name))).because(std::move(why));
  };
  std::vector<std::string> out;
  TRY_ASSIGN(const bool is_folder, os::is_present_folder(path));
  if (is_folder) {
    TRY_ASSIGN(const auto names, os::names_if_present(path));
    for (const std::string& name : names.value_or(std::vector<std::string>{}))
      if (is_data_file(name)) out.push_back(path + "/" + name);
    std::sort(out.begin(), out.end());
    if (out.empty()) return unusable(fmt::format("{} has no files .json, .jsonl or .txt", path));
    return out;
  }
  TRY_ASSIGN(const bool present, os::is_present(path));
  if (!present) return unusable(fmt::format("{} does not exist", path));
  if (!is_data_file(path)) return unusable(fmt::format("{} is neither .json, .jsonl nor .txt", path));
  out.push_back(path);
  return out;
}

base::Result<std::vector<tune::DatasetInfo>> find_all(const tune::Recipe& recipe, const std::vector<std::string>& names) {
  const std::string path = recipe.dataset_dir + "/dataset_info.json";
  TRY_ASSIGN(const std::string json, os::read_file(path, 16 << 20));
  std::vector<tune::DatasetInfo> out;
  for (const std::string& name : names) {
    TRY_ASSIGN(tune::DatasetInfo info, tune::find_dataset(json, name));
    if (info.ranking != (recipe.stage == "dpo"))
      return wrong(fmt::format("data set {} cannot be used for stage {}", base::quote(name), recipe.stage))
          .because(info.ranking ? "its records are pairs of answers (ranking), for stage dpo" : "its entry does not say ranking: true");
    out.push_back(std::move(info));
  }
  return out;
}

uint64_t size_of(const std::string& path) {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : bytes;
}

}  // namespace

namespace {

// Without a template: the tokenizer's own.
base::Status plain_tokens(const Text& text, PretrainTokens* out) {
  const auto eos = text.tokenizer->id_of(text.special.eos);
  if (text.special.eos.empty() || !eos) return wrong("tokenizer_config.json names no eos_token of the vocabulary");
  out->eos = *eos;
  out->pad = (text.special.pad.empty() ? std::nullopt : text.tokenizer->id_of(text.special.pad)).value_or(*eos);
  if (text.special.add_bos) out->first = text.tokenizer->id_of(text.special.bos);
  return base::ok();
}

base::Status chat_tokens(const tune::Recipe& recipe, Text* text) {
  TRY_ASSIGN(const tune::Template* chat, tune::find_template(recipe.chat_template));
  TRY_ASSIGN(tune::ChatEncoder encoder, tune::ChatEncoder::make(chat, text->tokenizer.get(), text->special, recipe.enable_thinking));
  if (recipe.default_system) encoder.set_default_system(*recipe.default_system);
  text->tokens = {encoder.eos(), encoder.pad(), text->special.add_bos ? encoder.bos() : std::nullopt};
  // LLaMA-Factory ends texts of Llama 3 as its first training did, not as a chat.
  if (recipe.chat_template == "llama3") text->tokens.eos = text->tokenizer->id_of("<|end_of_text|>").value_or(encoder.eos());
  text->chat = std::make_unique<tune::ChatEncoder>(std::move(encoder));
  const Json system = recipe.default_system ? Json(*recipe.default_system) : Json();
  Json about = {{"template", recipe.chat_template}, {"default_system", system}, {"enable_thinking", recipe.enable_thinking}};
  const std::vector<std::string>& adapters = recipe.adapter_name_or_path;
  if (const auto merged = static_cast<ptrdiff_t>(merged_adapters(recipe)); merged > 0)
    about["merged_adapters"] = std::vector<std::string>(adapters.begin(), adapters.begin() + merged);
  text->about = base::to_text(about, 2) + "\n";
  return base::ok();
}

}  // namespace

base::Result<Text> read_text(const tune::Recipe& recipe, const std::string& folder) {
  const bool plain = recipe.stage == "pt" && recipe.chat_template.empty();
  if (!plain) TRY(tune::find_template(recipe.chat_template));  // before the vocabulary is read, which takes a second
  Text out;
  out.folder = folder;
  TRY_ASSIGN(std::string vocabulary, os::read_file(folder + "/tokenizer.json", tune::kMaxTokenizerBytes));
  if (!recipe.add_tokens.empty() || !recipe.add_special_tokens.empty()) {
    TRY_ASSIGN(tune::ExtendedTokenizer more, tune::add_tokens(vocabulary, recipe.add_tokens, recipe.add_special_tokens));
    out.added = std::move(more.added);
    out.fresh = std::move(more.fresh);
    vocabulary = std::move(more.json);
  }
  TRY_ASSIGN(tune::Tokenizer tokenizer, tune::Tokenizer::parse(vocabulary));
  if (!out.added.empty()) out.json = std::move(vocabulary);
  TRY_ASSIGN(const std::string config, os::read_file(folder + "/tokenizer_config.json", 64 << 20));
  TRY_ASSIGN(out.special, tune::parse_special_tokens(config));
  out.tokenizer = std::make_unique<tune::Tokenizer>(std::move(tokenizer));
  if (plain) TRY(plain_tokens(out, &out.tokens));
  else TRY(chat_tokens(recipe, &out));
  return out;
}

namespace {

// The files of some sets, and how many bytes they have.
struct Sources {
  std::vector<tune::DatasetInfo> sets;
  std::vector<std::vector<DataFile>> files;  // of each set
  uint64_t bytes = 0;
};
base::Status find_sources(const tune::Recipe& recipe, const std::vector<std::string>& names, Sources* out) {
  TRY_ASSIGN(out->sets, find_all(recipe, names));
  for (const tune::DatasetInfo& info : out->sets) {
    TRY_ASSIGN(const auto paths, files_of(recipe.dataset_dir, info));
    out->files.emplace_back();
    for (const std::string& path : paths) {
      out->files.back().push_back({path, &info});
      out->bytes += size_of(path);
    }
  }
  return base::ok();
}

base::Status read_all(const tune::Recipe& recipe, const Sources& sources, Records* records, uint64_t* before, Bar& bar) {
  for (const auto& set : sources.files) {
    int64_t taken = 0;
    for (const DataFile& file : set) {
      const int64_t most = recipe.max_samples.value_or(INT64_MAX);
      TRY(read_file(file, most, &taken, records, [&](uint64_t done) { bar.advance(*before + done); }));
      *before += size_of(file.path);
    }
  }
  return base::ok();
}

void count(RowsRead* out) {
  for (const tuning::TuningRow& row : out->rows)
    for (auto [ids, labels] : {std::pair{&row.ids, &row.labels}, {&row.rejected_ids, &row.rejected_labels}}) {
      out->tokens += static_cast<int64_t>(ids->size());
      out->learned += static_cast<int64_t>(labels->size()) - std::count(labels->begin(), labels->end(), int64_t{tune::kIgnored});
    }
}

// Records that give no row: empty ones, and packed those that are too long.
int64_t left_out(const RowList& records, const tune::Recipe& recipe) {
  const bool whole = recipe.stage == "sft" && recipe.packs();
  return std::count_if(records.begin(), records.end(), [&](const tuning::TuningRow& row) {
    return row.ids.empty() || (whole && static_cast<int64_t>(row.ids.size()) >= recipe.cutoff_len);
  });
}

}  // namespace

base::Result<RowsRead> read_rows(const tune::Recipe& recipe, const Text* text, int64_t vocabulary, Bar& bar) {
  Sources learned, evaluated;
  if (text) {
    TRY(find_sources(recipe, recipe.dataset, &learned));
    TRY(find_sources(recipe, recipe.eval_dataset, &evaluated));
  } else {
    learned.files.push_back({{recipe.tokenized_path, nullptr}});
    learned.bytes = size_of(recipe.tokenized_path);
  }
  bar.start(words::Text{"reading the data"}, "load", Bar::Unit::kBytes, learned.bytes + evaluated.bytes);
  Records records(recipe, text, vocabulary), more(recipe, text, vocabulary);
  uint64_t before = 0;
  TRY(read_all(recipe, learned, &records, &before, bar));
  TRY(read_all(recipe, evaluated, &more, &before, bar));
  bar.end();
  RowList aside = std::move(more.rows);
  set_aside(recipe, &records.rows, &aside);
  const PretrainTokens tokens = text ? text->tokens : PretrainTokens();
  RowsRead out;
  out.dropped = left_out(records.rows, recipe) + left_out(aside, recipe);
  out.rows = pack_rows(std::move(records.rows), recipe, tokens);
  out.evaluated = pack_rows(std::move(aside), recipe, tokens);
  count(&out);
  if (out.rows.empty()) return base::fail(base::ErrorKind::kConfig, "the data has no record to learn from");
  if (out.learned == 0) return base::fail(base::ErrorKind::kConfig, "no token of the data is learned: every label is -100");
  if (recipe.evaluates() && out.evaluated.empty()) return base::fail(base::ErrorKind::kConfig, "there is no record to evaluate with");
  return out;
}

}  // namespace phalanx::engine::finetune
