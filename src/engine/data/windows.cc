#include "engine/data/windows.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "engine/comm/fingerprint.h"
#include "engine/require.h"

namespace phalanx::engine::data {
namespace {

// Where document `i` ends: where the next begins, the last one with the file.
uint64_t end_of(const TokenFile& file, uint64_t i) { return i + 1 < file.header.documents ? file.document(i + 1) : file.header.tokens; }

}  // namespace

WindowDataset::WindowDataset(std::shared_ptr<const MappedFile> file, TokenView tokens, uint64_t first, uint64_t last, int64_t context)
    : file_(std::move(file)), tokens_(tokens), first_(first), last_(last), context_(context) {
  require(first <= last && last <= tokens.count, "tokens {}–{} are out of range for the {} tokens of this file", first, last, tokens.count);
  require(context > 0, "the context of {} tokens is too small", context);
  size_ = last == first ? 0 : static_cast<int64_t>((last - first - 1) / static_cast<uint64_t>(context));
}

WindowDataset::WindowDataset(std::shared_ptr<const MappedFile> file, const TokenFile& tokens, uint64_t first_document,
                             uint64_t last_document, int64_t context)
    : file_(std::move(file)), tokens_(tokens.tokens), context_(context), file_of_documents_(tokens), first_document_(first_document) {
  require(first_document <= last_document && last_document <= tokens.header.documents,
          "documents {}–{} are out of range for the {} documents of this file", first_document, last_document, tokens.header.documents);
  require(context > 0, "the context of {} tokens is too small", context);
  window_ends_.reserve(last_document - first_document);
  for (uint64_t i = first_document; i < last_document; ++i) {
    const auto targets = static_cast<int64_t>(end_of(tokens, i) - tokens.document(i)) - 1;
    window_ends_.push_back(size_ += (targets + context - 1) / context);
  }
  if (window_ends_.empty()) return;
  first_ = tokens.document(first_document);
  last_ = end_of(tokens, last_document - 1);
}

WindowDataset::Window WindowDataset::window(int64_t index) const {
  require(index >= 0 && index < size_, "item {} is out of range for a dataset of {} items", index, size_);
  const auto context = static_cast<uint64_t>(context_);
  if (window_ends_.empty()) return {first_ + static_cast<uint64_t>(index) * context, context};
  const auto found = std::upper_bound(window_ends_.begin(), window_ends_.end(), index);
  const auto document = first_document_ + static_cast<uint64_t>(found - window_ends_.begin());
  const int64_t before = found == window_ends_.begin() ? 0 : *(found - 1);
  const uint64_t begin = file_of_documents_.document(document) + static_cast<uint64_t>(index - before) * context;
  return {begin, std::min(context, end_of(file_of_documents_, document) - 1 - begin)};
}

base::Result<Sample> WindowDataset::get(int64_t index, ItemRandom&) const {
  TRY(file_->intact());
  const Window at = window(index);
  const auto length = static_cast<int64_t>(at.length);
  const auto options = at::TensorOptions().dtype(at::kLong);
  Sample sample{{"tokens", at::empty({length}, options)}, {"targets", at::empty({length}, options)}};
  tokens_.copy(at.first, at.length, sample[0].value.data_ptr<int64_t>());
  tokens_.copy(at.first + 1, at.length, sample[1].value.data_ptr<int64_t>());
  return sample;
}

std::string WindowDataset::place(int64_t index) const { return fmt::format("{} token {}", file_->path(), window(index).first); }

uint64_t WindowDataset::fingerprint() const {
  comm::Fingerprint print;
  print.add(static_cast<int64_t>(file_->fingerprint()));
  for (int64_t number : {static_cast<int64_t>(first_), static_cast<int64_t>(last_), context_, size_}) print.add(number);
  return print.value();
}

}  // namespace phalanx::engine::data
