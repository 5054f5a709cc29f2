#include "engine/tuning/write_tensors.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/try.h"
#include "engine/checkpoint/hf_index.h"
#include "engine/checkpoint/safetensors.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::engine::tuning {
namespace {

const char* name_of(at::ScalarType type) { return type == at::kBFloat16 ? "BF16" : type == at::kHalf ? "F16" : "F32"; }

uint64_t bytes_of(const TensorToWrite& one) { return static_cast<uint64_t>(one.value.numel()) * c10::elementSize(one.type); }

}  // namespace

base::Status write_tensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                           const std::map<std::string, std::string>& metadata, const BytesDone& progress) {
  at::NoGradGuard no_grad;
  std::vector<checkpoint::TensorInfo> infos;
  uint64_t done = 0, all = 0;
  for (const TensorToWrite& one : tensors) {
    infos.push_back({one.name, name_of(one.type), one.value.sizes().vec(), 0, 0});
    all += bytes_of(one);
  }
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return base::system_error("create", path);
  const std::string header = checkpoint::make_safetensors_header(infos, metadata);
  TRY(os::write_all(file.get(), header, path));
  for (const TensorToWrite& one : tensors) {
    const at::Tensor value = one.value.detach().to(at::kCPU, one.type).contiguous();
    TRY(os::write_all(file.get(), {static_cast<const char*>(value.data_ptr()), value.nbytes()}, path));
    done += value.nbytes();
    if (progress) progress(done, all);
  }
  if (::fsync(file.get()) != 0) return base::system_error("fsync", path);
  return base::ok();
}

base::Status write_model(Decoder& decoder, const TensorFiles& base, const std::string& folder, uint64_t max_file_bytes,
                         const BytesDone& progress) {
  std::vector<TensorToWrite> tensors;
  std::vector<uint64_t> sizes;
  uint64_t all = 0;
  // A head that was tied has the type of the embedding.
  const auto type_of = [&](const std::string& name) {
    const std::string known = base.has(name) ? name : "model.embed_tokens.weight";
    return base.has(known) ? base.type(known) : at::kFloat;
  };
  for (const auto& item : decoder->named_parameters()) {
    tensors.push_back({item.key(), item.value(), type_of(item.key())});
    sizes.push_back(bytes_of(tensors.back()));
    all += sizes.back();
  }
  std::vector<size_t> starts = checkpoint::split_by_size(sizes, max_file_bytes);
  const size_t files = starts.size();
  starts.push_back(tensors.size());
  checkpoint::ModelIndex index{all, {}};
  uint64_t before = 0;
  for (size_t i = 0; i < files; ++i) {
    const std::string name = checkpoint::model_file(i + 1, files);
    const std::vector<TensorToWrite> part(tensors.begin() + static_cast<ptrdiff_t>(starts[i]),
                                          tensors.begin() + static_cast<ptrdiff_t>(starts[i + 1]));
    for (const TensorToWrite& one : part) index.weight_map[one.name] = name;
    const BytesDone sum = [&](uint64_t done, uint64_t) {
      if (progress) progress(before + done, all);
    };
    TRY(write_tensors(folder + "/" + name, part, {{"format", "pt"}}, sum));
    for (const TensorToWrite& one : part) before += bytes_of(one);
  }
  if (files < 2) return base::ok();
  return os::write_file_atomic(folder + "/" + std::string(checkpoint::kIndexFile), checkpoint::to_text(index), 0644);
}

}  // namespace phalanx::engine::tuning
