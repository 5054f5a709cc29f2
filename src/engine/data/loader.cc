#include "engine/data/loader.h"

#include <ATen/ops/empty.h>

#include "base/check.h"

namespace engine::data {

int64_t Loader::windows(size_t bytes, int64_t context) {
  return bytes == 0 ? 0 : static_cast<int64_t>(bytes - 1) / context;  // the last window needs a byte behind it
}

Loader::Loader(std::string_view text, int64_t context, int64_t rows, SamplerOptions options)
    : text_(text), context_(context), rows_(rows), options_(options) {
  options_.samples = windows(text.size(), context);
  per_epoch_ = distributed_count(options_) / rows_;
}

Batch Loader::batch(int64_t number) {
  CHECK(per_epoch_ > 0 && number >= 0);
  const int64_t epoch = number / per_epoch_;
  if (epoch != epoch_) {
    indices_ = distributed_indices(options_, epoch);
    epoch_ = epoch;
  }
  Batch batch{at::empty({rows_, context_}, at::TensorOptions().dtype(at::kLong)),
              at::empty({rows_, context_}, at::TensorOptions().dtype(at::kLong))};
  int64_t* tokens = batch.tokens.data_ptr<int64_t>();
  int64_t* targets = batch.targets.data_ptr<int64_t>();
  const int64_t first = number % per_epoch_ * rows_;
  for (int64_t row = 0; row < rows_; ++row) {
    const char* window = text_.data() + indices_[static_cast<size_t>(first + row)] * context_;
    for (int64_t i = 0; i < context_; ++i) {
      *tokens++ = static_cast<unsigned char>(window[i]);
      *targets++ = static_cast<unsigned char>(window[i + 1]);
    }
  }
  return batch;
}

}  // namespace engine::data
