#include "sets.h"

#include <ATen/ops/empty.h>

#include <fstream>

namespace phalanx::sets {

namespace data = engine::data;

Sample ragged_item(int64_t index, ItemRandom& random) {
  const int64_t length = 1 + index % 5;
  const auto whole = at::TensorOptions().dtype(at::kLong);
  Sample sample{{"tokens", at::empty({length}, whole)}, {"targets", at::empty({length}, whole)}, {"noise", at::empty({}, whole)}};
  for (int64_t i = 0; i < length; ++i) {
    sample[0].value.data_ptr<int64_t>()[i] = index + 1000 * i;
    sample[1].value.data_ptr<int64_t>()[i] = i < index % 3 ? data::kNoTarget : i;
  }
  *sample[2].value.data_ptr<int64_t>() = static_cast<int64_t>(random.below(1'000'000));
  return sample;
}

std::shared_ptr<Made> ragged(int64_t size) {
  return std::make_shared<Made>(size, [](int64_t index, ItemRandom& random) { return base::Result<Sample>(ragged_item(index, random)); });
}

void write(const std::string& path, std::string_view content) { std::ofstream(path, std::ios::binary | std::ios::trunc) << content; }

std::shared_ptr<const data::MappedFile> map(const std::string& path) {
  return std::make_shared<data::MappedFile>(data::MappedFile::open(path).value());
}

std::string to_text(const Sample& sample) {
  std::string text;
  for (const data::Field& field : sample) {
    text += field.name;
    for (int64_t size : field.value.sizes()) text += fmt::format(" {}", size);
    text += ':';
    for (int64_t i = 0; i < field.value.numel(); ++i)
      text += field.value.scalar_type() == at::kLong ? fmt::format(" {}", field.value.data_ptr<int64_t>()[i])
                                                     : fmt::format(" {}", field.value.data_ptr<float>()[i]);
    text += '\n';
  }
  return text;
}

std::string to_text(const data::Step& step) {
  std::string text = fmt::format("epoch {} step {} last {} rows {} of {} targets {}\n", step.epoch, step.step, step.last_of_epoch,
                                 step.rows, step.rows_of_all, step.targets);
  for (const data::MicroBatch& micro : step.micro) {
    text += fmt::format("micro {} {}\n", micro.rows, micro.targets) + to_text(micro.fields);
    if (micro.lengths.defined()) text += to_text(Sample{{"lengths", micro.lengths}});
  }
  return text;
}

}  // namespace phalanx::sets
