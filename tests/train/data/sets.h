// Small sets for the tests of the loader.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "engine/data/dataset.h"
#include "engine/data/files/line_files.h"
#include "engine/data/files/mapped_file.h"
#include "engine/data/step_loader.h"

namespace phalanx::sets {

using engine::data::ItemRandom;
using engine::data::Sample;

// A set whose items are what a function says.
class Made : public engine::data::Dataset {
 public:
  using Function = std::function<base::Result<Sample>(int64_t, ItemRandom&)>;
  Made(int64_t size, Function function) : size_(size), function_(std::move(function)) {}
  std::string name() const override { return "made"; }
  int64_t size() const override { return size_; }
  base::Result<Sample> get(int64_t index, ItemRandom& random) const override { return function_(index, random); }
  uint64_t fingerprint() const override { return static_cast<uint64_t>(size_) * 31; }

 private:
  int64_t size_;
  Function function_;
};

// Item i: 1 + i % 5 tokens, the first is i; a random number; targets with i % 3 of them masked.
Sample ragged_item(int64_t index, ItemRandom& random);
std::shared_ptr<Made> ragged(int64_t size);

void write(const std::string& path, std::string_view content);
std::shared_ptr<const engine::data::MappedFile> map(const std::string& path);

// Everything in a step as text, to compare steps.
std::string to_text(const engine::data::Step& step);
std::string to_text(const Sample& sample);

}  // namespace phalanx::sets
