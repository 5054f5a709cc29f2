#include "engine/data/sets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/require.h"

namespace phalanx::engine::data {

base::Result<std::shared_ptr<TensorDataset>> TensorDataset::create(std::string name, std::vector<Field> columns) {
  auto wrong = [&](std::string why) {
    return base::fail(base::ErrorKind::kUsage, fmt::format("cannot create the dataset {}", base::quote(name))).because(std::move(why));
  };
  if (columns.empty()) return wrong("the dataset has no tensors");
  for (size_t i = 0; i < columns.size(); ++i) {
    at::Tensor& value = columns[i].value;
    const std::string field = base::quote(columns[i].name);
    if (!value.defined() || value.dim() == 0) return wrong(fmt::format("{} has no rows: it is a scalar or undefined", field));
    if (!value.is_cpu()) return wrong(fmt::format("{} is not on the CPU", field));
    if (value.size(0) != columns[0].value.size(0))
      return wrong(
          fmt::format("{} has {} rows, but {} has {}", field, value.size(0), base::quote(columns[0].name), columns[0].value.size(0)));
    for (size_t j = 0; j < i; ++j)
      if (columns[j].name == columns[i].name) return wrong(fmt::format("two tensors are named {}", field));
    value = value.detach().contiguous();
  }
  return std::shared_ptr<TensorDataset>(new TensorDataset(std::move(name), std::move(columns)));
}

base::Result<Sample> TensorDataset::get(int64_t index, ItemRandom&) const {
  Sample sample;
  sample.reserve(columns_.size());
  for (const Field& column : columns_) sample.push_back({column.name, column.value.select(0, index)});
  return sample;
}

uint64_t TensorDataset::fingerprint() const {
  comm::Fingerprint print;
  constexpr size_t kPage = 4096, kPages = 64;
  for (const Field& column : columns_) {
    print.add(column.name);
    std::string_view bytes(static_cast<const char*>(column.value.data_ptr()), column.value.nbytes());
    print.add(static_cast<int64_t>(bytes.size()));
    const size_t step = std::max(kPage, bytes.size() / kPages);
    for (size_t at = 0; at < bytes.size(); at += step) print.add(bytes.substr(at, kPage));
  }
  return print.value();
}

ConcatDataset::ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
  require(!parts_.empty(), "a ConcatDataset needs at least one part");
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->size());
}

size_t ConcatDataset::part_of(int64_t index) const {
  require(index >= 0 && index < size(), "item {} is out of range for a dataset of {} items", index, size());
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
}

std::string ConcatDataset::name() const {
  if (parts_.size() == 1) return parts_[0]->name();
  return fmt::format("{} and {} more", parts_[0]->name(), parts_.size() - 1);
}

base::Result<Sample> ConcatDataset::get(int64_t index, ItemRandom& random) const {
  const size_t part = part_of(index);
  return parts_[part]->get(index - begin_of(part), random);
}

std::string ConcatDataset::place(int64_t index) const {
  const size_t part = part_of(index);
  return parts_[part]->place(index - begin_of(part));
}

uint64_t ConcatDataset::fingerprint() const {
  comm::Fingerprint print;
  for (const auto& part : parts_) print.add(static_cast<int64_t>(part->fingerprint()));
  return print.value();
}

}  // namespace phalanx::engine::data
