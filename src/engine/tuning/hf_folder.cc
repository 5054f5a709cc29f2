#include "engine/tuning/hf_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/hf_index.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::engine::tuning {
namespace {

constexpr size_t kMaxListed = 20;  // names of one kind in an error

base::Error bad(const std::string& path, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("cannot read the weights in {}", path)).because(std::move(why));
}

base::Status read_at(int fd, const std::string& path, void* out, uint64_t bytes, uint64_t offset) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, to, std::min<uint64_t>(bytes, 1 << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error("read", path);
    if (got == 0) return bad(path, "the file ends too early");
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return base::ok();
}

std::optional<at::ScalarType> float_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  return std::nullopt;
}

std::string listed(const char* what, const std::vector<std::string>& names) {
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kMaxListed)));
  if (names.size() > kMaxListed) shown.push_back(fmt::format("and {} more", names.size() - kMaxListed));
  return names.empty() ? "" : fmt::format("{}: {}", what, base::join(shown, ", "));
}

}  // namespace

base::Status TensorFiles::add(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) return base::system_error("stat", path);
  const auto size = static_cast<uint64_t>(about.st_size);
  std::string head(std::min<uint64_t>(size, 8), '\0');
  TRY(read_at(fd.get(), path, head.data(), head.size(), 0));
  auto length = checkpoint::head_length(head, size);
  if (!length.ok()) return bad(path, length.error().cause);
  head.resize(*length);
  TRY(read_at(fd.get(), path, head.data(), head.size(), 0));
  auto header = checkpoint::parse_safetensors_head(head, size);
  if (!header.ok()) return bad(path, header.error().cause);
  metadata_ = std::move(header->metadata);
  for (checkpoint::TensorInfo& info : header->tensors) {
    const std::string name = info.name;
    if (!places_.emplace(name, Place{path, header->data_start, std::move(info)}).second)
      return bad(path, fmt::format("tensor {} is in another file too", base::quote(name)));
  }
  return base::ok();
}

base::Result<TensorFiles> TensorFiles::open_file(const std::string& path) {
  TensorFiles out;
  TRY(out.add(path));
  return out;
}

base::Result<TensorFiles> TensorFiles::open_folder(const std::string& folder) {
  const std::string index_path = fmt::format("{}/{}", folder, checkpoint::kIndexFile);
  const std::string single = fmt::format("{}/{}", folder, checkpoint::kOneModelFile);
  std::error_code ignored;
  if (std::filesystem::exists(single, ignored)) return open_file(single);
  if (!std::filesystem::exists(index_path, ignored))
    return bad(folder, fmt::format("it has neither {} nor {}", checkpoint::kOneModelFile, checkpoint::kIndexFile));
  TRY_ASSIGN(const std::string text, os::read_file(index_path, 64 << 20));
  TRY_ASSIGN(const checkpoint::ModelIndex index, checkpoint::parse_model_index(text));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index.weight_map) files.insert(file);
  TensorFiles out;
  for (const std::string& file : files) TRY(out.add(folder + "/" + file));
  for (const auto& [tensor, file] : index.weight_map) {
    auto found = out.places_.find(tensor);
    if (found == out.places_.end() || found->second.file != folder + "/" + file)
      return bad(folder, fmt::format("the index names tensor {} in {}, which lacks it", base::quote(tensor), file));
  }
  return out;
}

std::vector<std::string> TensorFiles::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : places_) out.push_back(name);
  return out;
}

at::ScalarType TensorFiles::type(const std::string& name) const { return float_type(places_.at(name).info.dtype).value_or(at::kFloat); }

base::Result<at::Tensor> TensorFiles::read(const std::string& name) const {
  const Place& place = places_.at(name);
  const auto type = float_type(place.info.dtype);
  if (!type)
    return bad(place.file, fmt::format("tensor {} has the dtype {}; F32, BF16 and F16 are supported", base::quote(name), place.info.dtype));
  os::Fd fd(::open(place.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", place.file);
  at::Tensor out = at::empty(place.info.shape, at::TensorOptions().dtype(*type));
  TRY(read_at(fd.get(), place.file, out.data_ptr(), place.info.end - place.info.begin, place.data_start + place.info.begin));
  return out;
}

base::Result<at::Tensor> TensorFiles::map(const std::string& name) const {
  const Place& place = places_.at(name);
  const auto type = float_type(place.info.dtype);
  const uint64_t begin = place.data_start + place.info.begin, bytes = place.info.end - place.info.begin;
  if (!type || begin % c10::elementSize(*type) != 0 || bytes == 0) return read(name);
  os::Fd fd(::open(place.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", place.file);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t start = begin / page * page, length = begin - start + bytes;
  void* memory = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd.get(), static_cast<off_t>(start));
  if (memory == MAP_FAILED) return base::system_error("mmap", place.file);
  const auto unmap = [memory, length](void*) { ::munmap(memory, length); };
  return at::from_blob(static_cast<char*>(memory) + (begin - start), place.info.shape, unmap, at::TensorOptions().dtype(*type));
}

base::Status compare_tensors(const TensorFiles& files, const std::vector<NamedShape>& wanted, const std::vector<std::string>& ignored) {
  std::vector<std::string> missing, unexpected, misshaped;
  std::set<std::string> known(ignored.begin(), ignored.end());
  for (const NamedShape& one : wanted) {
    known.insert(one.name);
    if (!files.has(one.name)) missing.push_back(one.name);
    else if (files.shape(one.name) != one.shape)
      misshaped.push_back(fmt::format("{} is [{}] in the file and [{}] in the model", one.name, fmt::join(files.shape(one.name), ", "),
                                      fmt::join(one.shape, ", ")));
  }
  for (const std::string& name : files.names())
    if (!known.contains(name) && !name.ends_with(".rotary_emb.inv_freq")) unexpected.push_back(name);
  std::vector<std::string> lines;
  for (std::string line : {listed("missing", missing), listed("unexpected", unexpected), listed("of another shape", misshaped)})
    if (!line.empty()) lines.push_back(std::move(line));
  if (!lines.empty()) return base::fail(base::ErrorKind::kConfig, "the weights do not fit the model").because(base::join(lines, "\n"));
  return base::ok();
}

base::Status load_tensors(const TensorFiles& files, const std::vector<NamedTensor>& parameters, const std::vector<std::string>& ignored,
                          const BytesDone& progress) {
  std::vector<NamedShape> shapes;
  for (const NamedTensor& one : parameters) shapes.push_back({one.name, one.value.sizes().vec()});
  TRY(compare_tensors(files, shapes, ignored));
  at::NoGradGuard no_grad;
  uint64_t done = 0, all = 0;
  for (const NamedTensor& one : parameters) all += one.value.nbytes();
  for (const NamedTensor& one : parameters) {
    TRY_ASSIGN(const at::Tensor value, files.read(one.name));
    at::Tensor target = one.value;
    target.copy_(value);
    done += target.nbytes();
    if (progress) progress(done, all);
  }
  return base::ok();
}

}  // namespace phalanx::engine::tuning
