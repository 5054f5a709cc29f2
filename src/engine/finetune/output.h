// The folders that a fine-tuning writes: the tuned weights with what other programs need beside them. Each appears whole or not at all.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/finetune/bar.h"
#include "engine/finetune/read_rows.h"
#include "engine/tuning/decoder/decoder.h"
#include "tune/adapter/adapter_config.h"

namespace phalanx::engine::finetune {

// What is written, and where it came from.
using Trained = std::vector<tuning::NamedTensor>;
struct Tuned {
  tuning::Decoder decoder{nullptr};
  std::optional<tune::AdapterConfig> adapter;  // none: the whole model is written
  std::string base_folder;
  std::string tokenizer_folder;
  const Text* text = nullptr;  // null: no template was used
  uint64_t max_file_bytes = 5'000'000'000;
};

// The adapter as PEFT writes it, or the model as transformers does, and the tokenizer's files with the template's end of text, into a
// folder that exists and has none of these files.
// `trained`: the adapter's parameters by name; empty: those of the decoder.
base::Status write_tuned(const Tuned& tuned, const std::string& folder, Bar& bar, const Trained& trained = {});

// The same in place of what lies in `folder`, which this attempt has claimed with `token` (checkpoint/owner.h): written beside it first, so
// that a kill leaves the old files or the new ones. Error kConfig: another attempt has claimed it since.
base::Status replace_tuned(const Tuned& tuned, const std::string& folder, const std::string& token, Bar& bar, const Trained& trained = {});

// Collective: `write` runs on rank 0 with what it needs of the run: the whole model, or an adapter's parameters.
base::Status with_result(const Tuned& tuned, tuning::FineTuning& run, const std::function<base::Status(const Trained&)>& write);

// A folder to write into, new and empty, beside where it will lie: ".saving-<name>", with a token ".saving-<name>.<token>". What an earlier
// kill left there is removed.
base::Result<std::string> begin_folder(const std::string& parent, const std::string& name, const std::string& token = "");
// Gives it its name, after everything in it is on the disk. A folder that has the name is exchanged for it, and removed.
base::Status finish_folder(const std::string& parent, const std::string& name, const std::string& token = "");

}  // namespace phalanx::engine::finetune
