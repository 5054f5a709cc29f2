#include "engine/finetune/read_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/try.h"
#include "base/unicode.h"
#include "os/files.h"
#include "tune/chat/dataset_info.h"
#include "tune/chat/labels.h"
#include "tune/chat/records.h"

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

class Rows {
 public:
  Rows(const tune::Recipe& recipe, const Text* text, int64_t vocabulary)
      : recipe_(recipe), text_(text), vocabulary_(vocabulary), rules_{recipe.cutoff_len, recipe.train_on_prompt, recipe.mask_history} {
    if (recipe.stage == "pt" && text) pretrain_.emplace(recipe, *text->tokenizer, text->tokens);
  }

  base::Status add(const Json& record, const DataFile& file) {
    if (!file.info) return add_tokenized(record);
    if (pretrain_) return add_plain(record, file);
    TRY_ASSIGN(const auto conversation, tune::to_conversation(record, *file.info));
    if (!conversation) {
      ++out.dropped;
      return base::ok();
    }
    const tune::Labelled labelled = tune::label(text_->chat->turns(*conversation), rules_);
    return keep({{labelled.ids.begin(), labelled.ids.end()}, {labelled.labels.begin(), labelled.labels.end()}});
  }

  // After the last record of all sets.
  base::Status finish() {
    std::vector<tuning::TuningRow> rows;
    if (pretrain_) pretrain_->finish(&rows);
    return keep_all(std::move(rows));
  }

  RowsRead out;

 private:
  base::Status add_plain(const Json& record, const DataFile& file) {
    TRY_ASSIGN(const auto text, tune::to_plain_text(record, *file.info));
    std::vector<tuning::TuningRow> rows;
    if (text) pretrain_->add(*text, &rows);
    else ++out.dropped;
    return keep_all(std::move(rows));
  }

  base::Status keep_all(std::vector<tuning::TuningRow> rows) {
    for (tuning::TuningRow& row : rows) TRY(keep(std::move(row)));
    return base::ok();
  }

  base::Status add_tokenized(const Json& record) {
    tuning::TuningRow row;
    TRY_ASSIGN(row.ids, numbers_of(record, "input_ids"));
    TRY_ASSIGN(row.labels, numbers_of(record, "labels"));
    if (row.ids.size() != row.labels.size())
      return wrong(fmt::format("input_ids has {} numbers and labels {}", row.ids.size(), row.labels.size()));
    const auto most = std::min(row.ids.size(), static_cast<size_t>(recipe_.cutoff_len));
    row.ids.resize(most);
    row.labels.resize(most);
    return keep(std::move(row));
  }

  base::Status keep(tuning::TuningRow row) {
    for (size_t i = 0; i < row.ids.size(); ++i) {
      const int64_t id = row.ids[i], target = row.labels[i];
      const bool target_known = target == tune::kIgnored || (target >= 0 && target < vocabulary_);
      if (id >= 0 && id < vocabulary_ && target_known) continue;
      return wrong(fmt::format("{} {} at position {} is outside the vocabulary: the model's embedding has {} rows",
                               target_known ? "id" : "label", target_known ? id : target, i, vocabulary_));
    }
    out.tokens += static_cast<int64_t>(row.ids.size());
    out.learned += static_cast<int64_t>(row.labels.size()) - std::count(row.labels.begin(), row.labels.end(), int64_t{tune::kIgnored});
    if (row.ids.empty()) ++out.dropped;
    else out.rows.push_back(std::move(row));
    return base::ok();
  }

  const tune::Recipe& recipe_;
  const Text* text_;
  const int64_t vocabulary_;
  const tune::LabelRules rules_;
  std::optional<PretrainRows> pretrain_;  // stage pt
};

base::Status read_file(const DataFile& file, int64_t most, int64_t* taken, Rows* rows, const std::function<void(uint64_t)>& progress) {
  TRY_ASSIGN(const std::string content, os::read_file(file.path, kMaxDataBytes));
  tune::RecordReader reader(content);
  while (*taken < most) {
    auto record = reader.next();
    if (!record.ok()) return at_record(file, reader, record.error());
    if (!*record) break;
    if (base::Status added = rows->add(**record, file); !added.ok()) return at_record(file, reader, added.error());
    ++*taken;
    progress(reader.bytes_read());
  }
  progress(content.size());
  return base::ok();
}

bool is_data_file(const std::string& name) { return name.ends_with(".json") || name.ends_with(".jsonl"); }

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
    if (out.empty()) return unusable(fmt::format("{} has no files .json or .jsonl", path));
    return out;
  }
  TRY_ASSIGN(const bool present, os::is_present(path));
  if (!present) return unusable(fmt::format("{} does not exist", path));
  if (!is_data_file(path)) return unusable(fmt::format("{} is neither .json nor .jsonl", path));
  out.push_back(path);
  return out;
}

base::Result<std::vector<tune::DatasetInfo>> find_all(const tune::Recipe& recipe) {
  const std::string path = recipe.dataset_dir + "/dataset_info.json";
  TRY_ASSIGN(const std::string json, os::read_file(path, 16 << 20));
  std::vector<tune::DatasetInfo> out;
  for (const std::string& name : recipe.dataset) {
    TRY_ASSIGN(tune::DatasetInfo info, tune::find_dataset(json, name));
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
  const Json about = {{"template", recipe.chat_template}, {"default_system", system}, {"enable_thinking", recipe.enable_thinking}};
  text->about = base::to_text(about, 2) + "\n";
  return base::ok();
}

}  // namespace

base::Result<Text> read_text(const tune::Recipe& recipe, const std::string& model_folder) {
  const bool plain = recipe.stage == "pt" && recipe.chat_template.empty();
  if (!plain) TRY(tune::find_template(recipe.chat_template));  // before the vocabulary is read, which takes a second
  Text out;
  TRY_ASSIGN(const std::string vocabulary, os::read_file(model_folder + "/tokenizer.json", tune::kMaxTokenizerBytes));
  TRY_ASSIGN(tune::Tokenizer tokenizer, tune::Tokenizer::parse(vocabulary));
  TRY_ASSIGN(const std::string config, os::read_file(model_folder + "/tokenizer_config.json", 64 << 20));
  TRY_ASSIGN(out.special, tune::parse_special_tokens(config));
  out.tokenizer = std::make_unique<tune::Tokenizer>(std::move(tokenizer));
  if (plain) TRY(plain_tokens(out, &out.tokens));
  else TRY(chat_tokens(recipe, &out));
  return out;
}

base::Result<RowsRead> read_rows(const tune::Recipe& recipe, const Text* text, int64_t vocabulary, Bar& bar) {
  std::vector<tune::DatasetInfo> sets;
  std::vector<std::vector<DataFile>> files;
  if (text) {
    TRY_ASSIGN(sets, find_all(recipe));
    for (const tune::DatasetInfo& info : sets) {
      TRY_ASSIGN(const auto paths, files_of(recipe.dataset_dir, info));
      files.emplace_back();
      for (const std::string& path : paths) files.back().push_back({path, &info});
    }
  } else {
    files.push_back({{recipe.tokenized_path, nullptr}});
  }
  uint64_t all = 0, before = 0;
  for (const auto& set : files)
    for (const DataFile& file : set) all += size_of(file.path);
  bar.start(words::Text{"reading the data"}, "load", Bar::Unit::kBytes, all);
  Rows rows(recipe, text, vocabulary);
  for (const auto& set : files) {
    int64_t taken = 0;
    for (const DataFile& file : set) {
      const int64_t most = recipe.max_samples.value_or(INT64_MAX);
      TRY(read_file(file, most, &taken, &rows, [&](uint64_t done) { bar.advance(before + done); }));
      before += size_of(file.path);
    }
  }
  TRY(rows.finish());
  bar.end();
  if (rows.out.rows.empty()) return base::fail(base::ErrorKind::kConfig, "the data has no record to learn from");
  if (rows.out.learned == 0) return base::fail(base::ErrorKind::kConfig, "no token of the data is learned: every label is -100");
  return std::move(rows.out);
}

}  // namespace phalanx::engine::finetune
