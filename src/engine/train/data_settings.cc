#include "engine/train/data_settings.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "engine/data/batch_share.h"

namespace phalanx::engine::train {
namespace {

data::Format format_of(const std::string& name) {
  auto format = data::parse_format(name);
  PHALANX_CHECK(format.ok());  // the table of settings lets no other name through
  return *format;
}

data::Remainder remainder_of(const std::string& name) {
  return name == "drop" ? data::Remainder::kDrop : name == "pad" ? data::Remainder::kPad : data::Remainder::kKeep;
}

}  // namespace

data::SetOptions set_options(const Config& config) {
  const Config::Data& d = config.data;
  data::SetOptions options;
  options.files = d.corpus.empty() ? d.files : d.corpus;
  options.validation_files = d.validation_files;
  options.validation = d.validation;
  options.format = d.corpus.empty() ? format_of(d.format) : data::Format::kText;
  options.lines = {.json = true, .fields = {d.field, d.prompt_field}, .context = config.model.context};
  options.documents_apart = d.documents == "apart";
  options.streaming = d.streaming == "on";
  options.shuffle_buffer = d.shuffle == "on" ? d.shuffle_buffer : 0;
  return options;
}

base::Result<data::LoaderOptions> loader_options(const Config& config, int rank, int world) {
  TRY_ASSIGN(data::BatchShare share, data::share_batch(config.train.batch, world, config.train.accumulate));
  const Config::Data& d = config.data;
  data::LoaderOptions options;
  options.plan = {.world = world,
                  .rank = rank,
                  .rows = share.per_rank(),
                  .shuffle = d.shuffle == "on",
                  .seed = static_cast<uint64_t>(config.seed),
                  .remainder = remainder_of(d.remainder)};
  options.accumulate = share.accumulate;
  options.workers = static_cast<int>(d.workers);
  options.prefetch = d.prefetch;
  options.padding = {.tokens = d.pad_token, .multiple = d.pad_multiple};
  return options;
}

}  // namespace phalanx::engine::train
