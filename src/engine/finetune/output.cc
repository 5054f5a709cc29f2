#include "engine/finetune/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/json.h"
#include "base/try.h"
#include "engine/checkpoint/owner.h"
#include "engine/tuning/adapter.h"
#include "engine/tuning/write_tensors.h"
#include "os/fd.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::finetune {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizerFiles{"tokenizer.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
                                     "merges.txt",     "chat_template.jinja"};
constexpr const char* kTokenizerConfig = "tokenizer_config.json";

base::Status copy_if_present(const std::string& from, const std::string& to) {
  TRY_ASSIGN(const auto text, os::read_if_present(from, tune::kMaxTokenizerBytes));
  return text ? os::write_file_atomic(to, *text, 0644) : base::ok();
}

// tokenizer_config.json with the tokens that the template made of it: its first stop word as the end of text.
base::Status write_tokenizer_config(const Text& text, const std::string& from, const std::string& to) {
  TRY_ASSIGN(const std::string content, os::read_file(from, 64 << 20));
  TRY_ASSIGN(base::Json config, base::parse_json(content, 64 << 20));
  const auto token = [&](int32_t id) { return text.tokenizer->decode(std::array{id}); };
  if (text.chat) {
    config["eos_token"] = token(text.chat->eos());
    if (!config.contains("pad_token") || config["pad_token"].is_null()) config["pad_token"] = token(text.chat->pad());
  }
  for (const tune::AddedToken& one : text.added)
    config["added_tokens_decoder"][fmt::to_string(one.id)] = {{"content", one.content},       {"lstrip", false},
                                                              {"normalized", one.normalized}, {"rstrip", false},
                                                              {"single_word", false},         {"special", one.special}};
  return os::write_file_atomic(to, base::to_text(config, 2) + "\n", 0644);
}

// added_tokens.json of older tokenizers: {"<token>": id}.
base::Status write_added_tokens(const Text& text, const std::string& from, const std::string& to) {
  TRY_ASSIGN(const auto old, os::read_if_present(from, 64 << 20));
  if (!old) return base::ok();
  TRY_ASSIGN(base::Json ids, base::parse_json(*old, 64 << 20));
  for (const tune::AddedToken& one : text.added) ids[one.content] = one.id;
  return os::write_file_atomic(to, base::to_text(ids, 2) + "\n", 0644);
}

base::Status write_tokenizer(const Tuned& tuned, const std::string& folder) {
  const std::string base = tuned.tokenizer_folder + "/", to = folder + "/";
  for (const char* name : kTokenizerFiles) TRY(copy_if_present(base + name, to + name));
  const Text* text = tuned.text;
  if (text && !text->json.empty()) {
    TRY(os::write_file_atomic(to + "tokenizer.json", text->json, 0644));
    TRY(write_added_tokens(*text, base + "added_tokens.json", to + "added_tokens.json"));
  }
  if (text && text->chat) TRY(os::write_file_atomic(to + kTemplateFile, text->about, 0644));
  else TRY(copy_if_present(base + kTemplateFile, to + kTemplateFile));
  if (text && (text->chat || !text->added.empty())) return write_tokenizer_config(*text, base + kTokenizerConfig, to + kTokenizerConfig);
  return copy_if_present(base + kTokenizerConfig, to + kTokenizerConfig);
}

// config.json says what the folder's model has become.
base::Status write_config(const Tuned& tuned, const std::string& folder) {
  TRY_ASSIGN(const std::string text, os::read_file(tuned.base_folder + "/config.json", 1 << 20));
  TRY_ASSIGN(const tune::DecoderConfig before, tune::parse_decoder_config(text));
  const tuning::Decoder& decoder = tuned.decoder;
  const bool untied = !decoder->tied && before.tied.value_or(false);
  if (before.vocabulary == decoder->config.vocabulary && !untied) return os::write_file_atomic(folder + "/config.json", text, 0644);
  TRY_ASSIGN(base::Json config, base::parse_json(text));
  config["vocab_size"] = decoder->config.vocabulary;
  if (untied) config["tie_word_embeddings"] = false;
  return os::write_file_atomic(folder + "/config.json", base::to_text(config, 2) + "\n", 0644);
}

std::string model_card(const std::string& base_model) {
  return fmt::format("---\nbase_model: {}\nlibrary_name: peft\n---\nA LoRA adapter, written by phalanx-train.\n",
                     base::to_text(base::Json(base_model)));
}

base::Status sync_folder(const std::string& path) {
  const os::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return base::system_error("open", path);
  return ::fsync(folder.get()) == 0 ? base::ok() : base::system_error("fsync", path);
}

base::Status remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return base::fail(base::ErrorKind::kUnfit, fmt::format("cannot remove {}", path)).because(error.message());
  return base::ok();
}

std::string aside(const std::string& parent, const std::string& name, const std::string& token) {
  return parent + "/.saving-" + name + (token.empty() ? "" : "." + token);
}

base::Status rename_to(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? base::ok() : base::system_error("rename", to);
}

}  // namespace

base::Status with_result(const Tuned& tuned, tuning::FineTuning& run, const std::function<base::Status(const Trained&)>& write) {
  if (tuned.adapter) return run.with_trained(write);
  return run.with_whole_model([&] { return write({}); });
}

base::Status write_tuned(const Tuned& tuned, const std::string& folder, Bar& bar, const Trained& trained) {
  tuning::Decoder decoder = tuned.decoder;
  TRY(write_tokenizer(tuned, folder));
  if (tuned.adapter) {
    TRY(trained.empty() ? tuning::write_adapter(decoder, *tuned.adapter, folder) : tuning::write_adapter(trained, *tuned.adapter, folder));
    return os::write_file_atomic(folder + "/README.md", model_card(tuned.adapter->base_model), 0644);
  }
  TRY(copy_if_present(tuned.base_folder + "/generation_config.json", folder + "/generation_config.json"));
  TRY(write_config(tuned, folder));
  TRY_ASSIGN(const tuning::TensorFiles base, tuning::TensorFiles::open_folder(tuned.base_folder));
  return tuning::write_model(decoder, base, folder, tuned.max_file_bytes, [&](uint64_t done, uint64_t) { bar.advance(done); });
}

base::Status replace_tuned(const Tuned& tuned, const std::string& folder, const std::string& token, Bar& bar, const Trained& trained) {
  uint64_t all = 0;
  for (const at::Tensor& value : tuned.decoder->parameters()) all += tuned.adapter ? 0 : value.nbytes();
  bar.start(words::Text{"saving"}, "save", Bar::Unit::kBytes, all);
  TRY_ASSIGN(const std::string beside, begin_folder(folder, "model", token));
  TRY(write_tuned(tuned, beside, bar, trained));
  TRY_ASSIGN(const checkpoint::OwnerLock lock, checkpoint::OwnerLock::take(folder));
  TRY(checkpoint::still_owner(folder, token));
  TRY_ASSIGN(const auto fresh, os::names_if_present(beside));
  TRY_ASSIGN(const auto old, os::names_if_present(folder));
  for (const std::string& name : fresh.value_or(std::vector<std::string>{})) TRY(rename_to(beside + "/" + name, folder + "/" + name));
  // Parts of a larger model that lay here would be taken for parts of this one.
  for (const std::string& name : old.value_or(std::vector<std::string>{}))
    if (!tuned.adapter && name.starts_with("model") && name.find(".safetensors") != std::string::npos &&
        std::find(fresh->begin(), fresh->end(), name) == fresh->end())
      ::unlink((folder + "/" + name).c_str());
  TRY(remove_folder(beside));
  bar.end();
  return sync_folder(folder);
}

base::Result<std::string> begin_folder(const std::string& parent, const std::string& name, const std::string& token) {
  const std::string folder = aside(parent, name, token);
  TRY(remove_folder(folder));
  TRY(os::make_folders(folder, 0755));
  return folder;
}

base::Status finish_folder(const std::string& parent, const std::string& name, const std::string& token) {
  const std::string from = aside(parent, name, token), to = parent + "/" + name;
  TRY(sync_folder(from));
  TRY_ASSIGN(const bool taken, os::is_present(to));
  if (!taken) {
    TRY(rename_to(from, to));
    return sync_folder(parent);
  }
  // Both exist at every moment. Where the file system cannot exchange names, the old one goes first, and the new one lies beside it.
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    TRY(remove_folder(to));
    TRY(rename_to(from, to));
    return sync_folder(parent);
  }
  TRY(sync_folder(parent));
  return remove_folder(from);
}

}  // namespace phalanx::engine::finetune
