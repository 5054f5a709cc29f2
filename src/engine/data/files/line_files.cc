#include "engine/data/files/line_files.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "engine/comm/fingerprint.h"
#include "engine/data/tokenizer.h"
#include "engine/require.h"

namespace phalanx::engine::data {
namespace {

std::string place_of(const MappedFile& file, uint64_t offset) { return fmt::format("{}:{}", file.path(), file.line_of(offset)); }

Sample to_sample(const Record& record, int64_t context) {
  std::vector<int64_t> ids = ByteTokenizer::encode(record.prompt);
  const auto prompt = static_cast<int64_t>(ids.size());
  const std::vector<int64_t> text = ByteTokenizer::encode(record.text);
  ids.insert(ids.end(), text.begin(), text.end());
  const int64_t length = std::clamp<int64_t>(static_cast<int64_t>(ids.size()) - 1, 0, context);
  const auto options = at::TensorOptions().dtype(at::kLong);
  Sample sample{{"tokens", at::empty({length}, options)}, {"targets", at::empty({length}, options)}};
  std::copy_n(ids.begin(), length, sample[0].value.data_ptr<int64_t>());
  int64_t* targets = sample[1].value.data_ptr<int64_t>();
  for (int64_t i = 0; i < length; ++i) targets[i] = i + 1 < prompt ? kNoTarget : ids[static_cast<size_t>(i) + 1];
  return sample;
}

}  // namespace

base::Result<Sample> read_line(const MappedFile& file, uint64_t offset, const LineFormat& format) {
  TRY(file.intact());
  const std::string_view line = line_at(file.bytes(), offset);
  auto record = format.json ? parse_json_record(line, format.fields) : parse_text_record(line);
  if (record.ok()) return to_sample(*record, format.context);
  base::Error error = std::move(record).error();
  error.message = fmt::format("{}: {}", place_of(file, offset), error.message);
  return error;
}

std::vector<uint64_t> index_lines(const MappedFile& file) {
  std::vector<uint64_t> index;
  LineCursor cursor(file.bytes());
  while (auto offset = cursor.next()) index.push_back(*offset);
  return index;
}

LineDataset::LineDataset(std::shared_ptr<const MappedFile> file, std::shared_ptr<const std::vector<uint64_t>> index, size_t first,
                         size_t last, LineFormat format)
    : file_(std::move(file)), index_(std::move(index)), first_(first), last_(last), format_(std::move(format)) {
  require(first <= last && last <= index_->size(), "lines {}–{} are out of range for the {} lines of this file", first, last,
          index_->size());
  require(format_.context > 0, "the context of {} tokens is too small", format_.context);
}

base::Result<Sample> LineDataset::get(int64_t index, ItemRandom&) const {
  require(index >= 0 && index < size(), "item {} is out of range for a dataset of {} items", index, size());
  return read_line(*file_, offset(index), format_);
}

std::string LineDataset::place(int64_t index) const { return place_of(*file_, offset(index)); }

uint64_t LineDataset::fingerprint() const {
  comm::Fingerprint print;
  print.add(static_cast<int64_t>(file_->fingerprint()));
  for (int64_t number : {static_cast<int64_t>(first_), static_cast<int64_t>(last_), format_.context}) print.add(number);
  return print.value();
}

}  // namespace phalanx::engine::data
