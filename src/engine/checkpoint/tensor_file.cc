#include "engine/checkpoint/tensor_file.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/sha256.h"
#include "base/unicode.h"
#include "engine/checkpoint/dtypes.h"
#include "engine/checkpoint/safetensors.h"
#include "os/fd.h"

namespace engine::checkpoint {
namespace {

std::string_view bytes_of(const at::Tensor& contiguous) { return {static_cast<const char*>(contiguous.data_ptr()), contiguous.nbytes()}; }

struct Unmap {
  size_t size;
  void operator()(char* address) const { munmap(address, size); }
};

}  // namespace

base::Result<FileRecord> write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : tensors) {
    TRY_ASSIGN(std::string dtype, dtype_name(tensor.value.scalar_type()));
    infos.push_back({tensor.name, dtype, tensor.value.sizes().vec(), 0, 0});
  }
  os::Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return base::system_error("create", path);
  FileRecord record;
  base::Sha256 hash;
  auto put = [&](std::string_view bytes) {
    hash.update(bytes);
    record.bytes += bytes.size();
    return os::write_all(fd.get(), bytes, path);
  };
  TRY(put(make_safetensors_header(infos, {{"format", "pt"}})));
  for (const NamedTensor& tensor : tensors) {
    at::Tensor here = tensor.value.detach().to(at::kCPU).contiguous();
    TRY(put(bytes_of(here)));
  }
  if (fsync(fd.get()) != 0) return base::system_error("fsync", path);
  record.sha256 = hash.hex();
  return record;
}

base::Result<std::map<std::string, at::Tensor>> read_tensors(const std::string& path, const FileRecord& expected) {
  auto damaged = [&](std::string why) {
    return base::fail(base::ErrorKind::kConfig, fmt::format("checkpoint file {} is damaged", base::quote(path))).because(std::move(why));
  };
  os::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return damaged(std::strerror(errno));
  const auto size = static_cast<size_t>(info.st_size);
  if (size != expected.bytes) return damaged(fmt::format("it has {} bytes; the manifest says {}", size, expected.bytes));
  if (size == 0) return damaged("it is empty");
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return damaged(std::strerror(errno));
  std::unique_ptr<char, Unmap> mapped(static_cast<char*>(address), Unmap{size});
  std::string_view file(mapped.get(), size);
  if (std::string found = base::sha256_hex(file); found != expected.sha256)
    return damaged(fmt::format("its SHA-256 is {}…; the manifest says {}…", found.substr(0, 12), base::printable(expected.sha256, 12)));

  auto header = parse_safetensors(file);
  if (!header.ok()) return std::move(header.error()).within(fmt::format("{} was read", base::quote(path)));
  std::map<std::string, at::Tensor> tensors;
  for (const TensorInfo& one : header->tensors) {
    std::optional<at::ScalarType> type = scalar_type(one.dtype);
    if (!type) return damaged(fmt::format("tensor {} has dtype {}, which libtorch has not", base::quote(one.name), one.dtype));
    at::Tensor tensor = at::empty(one.shape, at::TensorOptions().dtype(*type));
    if (one.end > one.begin) std::memcpy(tensor.data_ptr(), file.data() + header->data_start + one.begin, one.end - one.begin);
    tensors.emplace(one.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace engine::checkpoint
