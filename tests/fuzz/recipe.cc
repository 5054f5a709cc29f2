// Any bytes as a LLaMA-Factory YAML, and as DeepSpeed's JSON: a recipe within its limits, or an error that lists what is wrong.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tune/recipe/recipe.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto tree = base::parse_json(bytes); tree.ok()) {
    std::vector<tune::GivenKey> given;
    auto zero = tune::read_deepspeed(*tree, tune::Recipe(), &given);
    PHALANX_CHECK(zero.ok() ? zero->stage >= 0 && zero->stage <= 3 : !zero.error().message.empty());
  }
  if (auto as_given = tune::read_recipe(bytes, {}, tune::Purpose::kChat); as_given.ok())
    PHALANX_CHECK(!as_given->recipe.model_name_or_path.empty());
  auto read = tune::read_recipe(bytes, {"stage=sft"});
  if (!read.ok()) {
    PHALANX_CHECK(!read.error().message.empty());
    return 0;
  }
  PHALANX_CHECK(read->recipe.lora_rank >= 1 && read->recipe.cutoff_len >= 1);
  PHALANX_CHECK(!read->recipe.dataset.empty() || !read->recipe.tokenized_path.empty());
  PHALANX_CHECK(!tune::explain(*read, base::Language::kChinese).empty());
  return 0;
}
