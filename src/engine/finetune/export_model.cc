#include "engine/finetune/export_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/finetune/output.h"
#include "engine/finetune/read_rows.h"
#include "engine/finetune/vocabulary.h"
#include "engine/tuning/adapter.h"
#include "engine/tuning/load_decoder.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::finetune {
namespace {

constexpr uint64_t kGigabyte = 1'000'000'000;

// "a/b/" → "a" and "b"; an empty folder of that name makes room.
struct Target {
  std::string parent, name;
};
base::Result<Target> make_room(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::filesystem::path whole(path);
  const Target out{whole.has_parent_path() ? whole.parent_path().string() : ".", whole.filename().string()};
  if (out.name.empty() || out.name == "." || out.name == "..")
    return base::fail(base::ErrorKind::kConfig, fmt::format("export_dir: {} is not the name of a new folder", base::quote(path, 400)));
  TRY_ASSIGN(const auto names, os::names_if_present(path));
  if (names && !names->empty())
    return base::fail(base::ErrorKind::kConfig, fmt::format("export_dir {} is not empty", base::quote(path, 400)))
        .with_hint("choose another export_dir, or remove that one");
  if (names && ::rmdir(path.c_str()) != 0) return base::system_error("rmdir", path);
  TRY(os::make_folders(out.parent, 0755));
  return out;
}

}  // namespace

base::Status export_model(const tune::Recipe& recipe, Bar& bar) {
  TRY_ASSIGN(const Target target, make_room(recipe.export_dir));
  const std::string& base = recipe.model_name_or_path;
  TRY_ASSIGN(const std::string words, tokenizer_folder(base, recipe.adapter_name_or_path));
  std::optional<Text> text;
  if (!recipe.chat_template.empty()) { TRY_ASSIGN(text, read_text(recipe, words)); }
  TRY_ASSIGN(const std::string config, os::read_file(base + "/config.json", 1 << 20));
  TRY_ASSIGN(const tune::DecoderConfig shape, tune::parse_decoder_config(config));
  TRY_ASSIGN(const tuning::Changes changes, changes_for(recipe, text ? &*text : nullptr, shape.vocabulary, false));
  bar.start(words::Text{"loading the model"}, "load", Bar::Unit::kBytes, 0);
  const auto progress = [&](uint64_t done, uint64_t all) { bar.advance(done, all); };
  TRY_ASSIGN(tuning::Decoder decoder, tuning::load_decoder(base, progress, changes));
  bar.start(words::Text{"merging"}, "merge", Bar::Unit::kParts, recipe.adapter_name_or_path.size());
  for (size_t i = 0; i < recipe.adapter_name_or_path.size(); ++i) {
    TRY_ASSIGN([[maybe_unused]] const auto adapter, tuning::read_adapter(decoder, recipe.adapter_name_or_path[i]));
    tuning::merge_adapters(decoder);
    bar.advance(i + 1);
  }
  uint64_t all = 0;
  for (const at::Tensor& value : decoder->parameters()) all += value.nbytes();
  bar.start(words::Text{"saving"}, "save", Bar::Unit::kBytes, all);
  TRY_ASSIGN(const std::string folder, begin_folder(target.parent, target.name));
  const Tuned tuned{decoder, std::nullopt, base, words, text ? &*text : nullptr, static_cast<uint64_t>(recipe.export_size) * kGigabyte};
  TRY(write_tuned(tuned, folder, bar));
  TRY(finish_folder(target.parent, target.name));
  bar.end();
  TRY_ASSIGN(const auto notes, notes_on_order(recipe.adapter_name_or_path));
  for (const words::Message& note : notes) bar.note(note);
  bar.note(words::tr("{} written; adapters merged: {}", recipe.export_dir, recipe.adapter_name_or_path.size()));
  return base::ok();
}

}  // namespace phalanx::engine::finetune
