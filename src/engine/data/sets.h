// Sets made of other sets, and the set in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace phalanx::engine::data {

// Tensors in memory, one row of each per item: images and labels, say. The rows handed out are views; do not write to them.
class TensorDataset : public Dataset {
 public:
  // Error (kUsage): no field, two fields of one name, a scalar, lengths that differ, or a tensor that is not on the CPU.
  static base::Result<std::shared_ptr<TensorDataset>> create(std::string name, std::vector<Field> columns);

  std::string name() const override { return name_; }
  int64_t size() const override { return columns_[0].value.size(0); }
  base::Result<Sample> get(int64_t index, ItemRandom& random) const override;
  uint64_t fingerprint() const override;

 private:
  TensorDataset(std::string name, std::vector<Field> columns) : name_(std::move(name)), columns_(std::move(columns)) {}
  std::string name_;
  std::vector<Field> columns_;
};

// Several sets one behind the other. There must be one at least.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);

  std::string name() const override;
  int64_t size() const override { return ends_.back(); }
  base::Result<Sample> get(int64_t index, ItemRandom& random) const override;
  std::string place(int64_t index) const override;
  uint64_t fingerprint() const override;
  const std::vector<std::shared_ptr<const Dataset>>& parts() const { return parts_; }

 private:
  size_t part_of(int64_t index) const;
  int64_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }
  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<int64_t> ends_;  // of each part, counted over all
};

}  // namespace phalanx::engine::data
