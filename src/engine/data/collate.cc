#include "engine/data/collate.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::data {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("{} [{}]", at::toString(tensor.scalar_type()), fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
}

base::Error cannot_stack(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "these items cannot be combined into a batch").because(std::move(why));
}

base::Status check_field(std::span<const Sample> items, size_t field) {
  const Field& first = items[0][field];
  for (size_t row = 0; row < items.size(); ++row) {
    if (items[row].size() != items[0].size())
      return cannot_stack(fmt::format("item {} of the batch has {} fields, item 0 has {}", row, items[row].size(), items[0].size()));
    const Field& here = items[row][field];
    if (here.name != first.name)
      return cannot_stack(
          fmt::format("field {} of item {} is {}, of item 0 {}", field, row, base::quote(here.name), base::quote(first.name)));
    if (!here.value.defined() || !here.value.is_cpu() || !here.value.is_contiguous())
      return cannot_stack(fmt::format("{} of item {} is not a contiguous tensor on the CPU", base::quote(here.name), row));
    const bool ragged = first.value.dim() == 1 && here.value.dim() == 1;
    if (here.value.scalar_type() != first.value.scalar_type() || (!ragged && here.value.sizes() != first.value.sizes()))
      return cannot_stack(fmt::format("{} is {} in item {} and {} in item 0", base::quote(here.name), shape_text(here.value), row,
                                      shape_text(first.value)));
  }
  return base::ok();
}

void fill(char* to, int64_t many, const at::Tensor& like, int64_t value) {
  AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, like.scalar_type(), "pad",
                             [&] { std::fill_n(reinterpret_cast<scalar_t*>(to), many, static_cast<scalar_t>(value)); });
}

int64_t padded_length(std::span<const Sample> items, size_t field, const Padding& padding) {
  int64_t longest = 1;
  for (const Sample& item : items) longest = std::max(longest, item[field].value.size(0));
  return (longest + padding.multiple - 1) / padding.multiple * padding.multiple;
}

bool is_ragged(std::span<const Sample> items, size_t field) {
  for (const Sample& item : items)
    if (item[field].value.size(0) != items[0][field].value.size(0)) return true;
  return false;
}

at::Tensor stack(std::span<const Sample> items, size_t field, const Padding& padding) {
  const at::Tensor& first = items[0][field].value;
  std::vector<int64_t> shape(first.sizes().begin(), first.sizes().end());
  const bool row_of_numbers = first.dim() == 1;
  const bool pads = row_of_numbers && (is_ragged(items, field) || padding.multiple > 1 || first.size(0) == 0);
  if (pads) shape[0] = padded_length(items, field, padding);
  shape.insert(shape.begin(), static_cast<int64_t>(items.size()));
  at::Tensor out = at::empty(shape, first.options().requires_grad(false));
  if (out.numel() == 0) return out;
  const size_t row_bytes = out.nbytes() / items.size();
  const bool whole = at::isIntegralType(first.scalar_type(), /*includeBool=*/false);
  const int64_t filler = !whole ? 0 : items[0][field].name == "targets" ? kNoTarget : padding.tokens;
  auto* to = static_cast<char*>(out.data_ptr());
  for (const Sample& item : items) {  // memcpy, not copy_: an operator in a worker thread would start a thread pool of its own
    const at::Tensor& value = item[field].value;
    const size_t bytes = value.nbytes();
    if (bytes > 0) std::memcpy(to, value.data_ptr(), bytes);
    if (bytes < row_bytes) fill(to + bytes, static_cast<int64_t>((row_bytes - bytes) / value.element_size()), value, filler);
    to += row_bytes;
  }
  return out;
}

int64_t count_targets(std::span<const Sample> items) {
  int64_t count = 0;
  bool found = false;
  for (const Sample& item : items)
    for (const Field& field : item) {
      if (field.name != "targets" || field.value.scalar_type() != at::kLong) continue;
      found = true;
      const int64_t* values = field.value.data_ptr<int64_t>();
      count += field.value.numel() - std::count(values, values + field.value.numel(), kNoTarget);
    }
  return found ? count : static_cast<int64_t>(items.size());
}

}  // namespace

const at::Tensor& MicroBatch::at(const std::string& name) const {
  for (const Field& field : fields)
    if (field.name == name) return field.value;
  throw std::out_of_range("a batch has no field " + name);
}

base::Result<MicroBatch> collate(std::span<const Sample> items, const Padding& padding) {
  if (padding.multiple <= 0)
    return base::fail(base::ErrorKind::kConfig, fmt::format("rows cannot be padded to a multiple of {}", padding.multiple));
  MicroBatch batch;
  batch.rows = static_cast<int64_t>(items.size());
  if (items.empty()) return batch;
  for (size_t field = 0; field < items[0].size(); ++field) {
    TRY(check_field(items, field));
    batch.fields.push_back({items[0][field].name, stack(items, field, padding)});
    if (batch.lengths.defined() || items[0][field].value.dim() != 1) continue;
    batch.lengths = at::empty({batch.rows}, at::TensorOptions().dtype(at::kLong));
    for (int64_t row = 0; row < batch.rows; ++row)
      batch.lengths.data_ptr<int64_t>()[row] = items[static_cast<size_t>(row)][field].value.size(0);
  }
  batch.targets = count_targets(items);
  return batch;
}

}  // namespace phalanx::engine::data
