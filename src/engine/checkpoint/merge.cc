#include "engine/checkpoint/merge.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/dtypes.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/hf_index.h"
#include "engine/checkpoint/interrupt.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/safetensors.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelPrefix = "model.", kMergingPrefix = ".merging-";
constexpr int64_t kChunkElements = 1 << 20;

struct Source {
  std::string stored;  // the name in the checkpoint
  int64_t count = 0;
};

// One file of the output: its tensors in the order of their bytes, and where each comes from.
struct Part {
  std::vector<TensorInfo> tensors;
  std::vector<Source> sources;
};

struct Plan {
  std::vector<Part> parts;
  uint64_t bytes = 0;  // of all tensors
  size_t tensors = 0;
};

base::Result<Plan> make_plan(const Reader& reader, const MergeOptions& options) {
  std::vector<TensorInfo> tensors;
  std::vector<Source> sources;
  std::vector<uint64_t> sizes;
  Plan plan;
  for (const auto& [name, extent] : reader.tensors()) {
    if (!name.starts_with(kModelPrefix)) continue;
    auto type = scalar_type(extent.dtype);
    if (!type) return base::fail(base::ErrorKind::kConfig, fmt::format("tensor {} has dtype {}", base::quote(name), extent.dtype));
    const bool convert = !options.dtype.empty() && at::isFloatingType(*type);
    tensors.push_back({name.substr(kModelPrefix.size()), convert ? options.dtype : extent.dtype, extent.shape, 0, 0});
    sources.push_back({name, extent.count});
    sizes.push_back(static_cast<uint64_t>(extent.count) * dtype_bytes(tensors.back().dtype));
    plan.bytes += sizes.back();
  }
  if (tensors.empty())
    return base::fail(base::ErrorKind::kConfig, fmt::format("the checkpoint {} has no model", base::quote(reader.path(), 400)))
        .because("none of its tensors has a name that starts with \"model.\"");
  plan.tensors = tensors.size();
  std::vector<size_t> starts = split_by_size(sizes, options.max_file_bytes);
  starts.push_back(tensors.size());
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    Part part;
    for (size_t t = starts[i]; t < starts[i + 1]; ++t) {
      part.tensors.push_back(std::move(tensors[t]));
      part.sources.push_back(std::move(sources[t]));
    }
    plan.parts.push_back(std::move(part));
  }
  return plan;
}

std::string parent_of(const std::string& folder) {
  const std::string parent = fs::path(folder).parent_path().string();
  return parent.empty() ? "." : parent;
}

base::Status check_room(const std::string& parent, uint64_t bytes) {
  struct statvfs disk{};
  if (statvfs(parent.c_str(), &disk) != 0) return io_error("statvfs", parent, errno);
  const uint64_t room = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (room >= bytes) return base::ok();
  return base::fail(base::ErrorKind::kUnfit, fmt::format("the merged model does not fit on the disk of {}", base::quote(parent, 400)))
      .because(fmt::format("it needs {}, but only {} are free", base::format_bytes(bytes), base::format_bytes(room)))
      .with_hint("use -o FOLDER on another disk, or --dtype bf16");
}

// The folder in which the output grows, beside the final one. A lock on it tells whether its merge still lives.
class Workplace {
 public:
  explicit Workplace(const std::string& target) : target_(target) {
    static std::atomic<int> count{0};
    const std::string stem = parent_of(target) + "/" + std::string(kMergingPrefix) + fs::path(target).filename().string() + ".";
    stem_ = fs::path(stem).filename().string();
    path_ = fmt::format("{}{}.{}", stem, getpid(), ++count);
  }
  ~Workplace() {
    std::error_code ignored;
    if (lock_.valid()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

  base::Status open() {
    if (auto made = os::make_folders(parent_of(target_), 0755); !made.ok()) return cannot_tell(std::move(made).error());
    TRY_ASSIGN(const std::vector<std::string> names, names_in(parent_of(target_)));
    for (const std::string& name : names)
      if (name.starts_with(stem_)) remove_if_dead(parent_of(target_) + "/" + name);
    if (mkdir(path_.c_str(), 0755) != 0) return io_error("mkdir", path_, errno);
    lock_ = os::Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_.valid() || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return io_error("lock", path_, errno);
    return base::ok();
  }
  base::Status publish(bool replace) {
    TRY(sync_path(path_));
    if (rename(path_.c_str(), target_.c_str()) != 0) {  // also onto an empty folder
      if (!replace || (errno != EEXIST && errno != ENOTEMPTY)) return io_error("rename", path_, errno);
      if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) TRY(take_turns());
    }
    return sync_path(parent_of(target_));
  }

 private:
  // Where the file system cannot exchange names: the old model goes aside, and comes back if the new one cannot take its place.
  base::Status take_turns() {
    const std::string old = path_ + ".old";
    if (rename(target_.c_str(), old.c_str()) != 0) return io_error("rename", target_, errno);
    if (rename(path_.c_str(), target_.c_str()) != 0) {
      const int failure = errno;
      (void)rename(old.c_str(), target_.c_str());
      return io_error("rename", path_, failure);
    }
    std::error_code ignored;  // a later merge removes what is left: it begins with stem_
    fs::remove_all(old, ignored);
    return base::ok();
  }
  static void remove_if_dead(const std::string& path) {
    os::Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Only with the lock in hand it is known to be dead. What cannot be opened or locked may belong to a merge that goes on.
    if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string target_, stem_, path_;
  os::Fd lock_;
};

// Only what a merge made may be replaced.
base::Status check_target(const MergeOptions& options) {
  TRY_ASSIGN(const bool exists, is_there(options.folder));
  if (!exists) return base::ok();
  auto folder = os::is_present_folder(options.folder);
  if (!folder.ok()) return cannot_tell(std::move(folder).error());
  std::vector<std::string> inside;
  if (*folder) { TRY_ASSIGN(inside, names_in(options.folder)); }
  bool foreign = !*folder, beside = false, model = false;
  for (const std::string& name : inside) {
    if (name == kConfigFile || name == kPythonFile) beside = true;
    else if (name.starts_with("model") && name.find(".safetensors") != std::string::npos) model = true;
    else foreign = true;
  }
  foreign = foreign || (beside && !model);
  if (!foreign && (inside.empty() || options.replace)) return base::ok();
  base::Error taken = base::fail(base::ErrorKind::kUsage, fmt::format("{} already exists", base::quote(options.folder, 400)));
  if (foreign)
    return std::move(taken).because("the folder contains more than a merged model").with_hint("choose another folder with -o FOLDER");
  return std::move(taken).with_hint("--replace overwrites it");
}

class Writer {
 public:
  Writer(Reader& reader, const MergeOptions& options, const Interrupt& interrupt, uint64_t all)
      : reader_(reader), options_(options), interrupt_(interrupt), all_(all) {}

  base::Result<FileRecord> write(Part& part, const std::string& path) {
    fd_ = os::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd_.valid()) return io_error("create", path, errno);
    path_ = path;
    hash_ = base::Sha256();
    file_ = {};
    TRY(put(make_safetensors_header(part.tensors, {{"format", "pt"}})));
    for (size_t i = 0; i < part.tensors.size(); ++i) TRY(copy(part.sources[i], *scalar_type(part.tensors[i].dtype)));
    if (fsync(fd_.get()) != 0) return io_error("fsync", path, errno);
    file_.sha256 = hash_.hex();
    return file_;
  }

 private:
  base::Status copy(const Source& source, at::ScalarType type) {
    for (int64_t begin = 0; begin < source.count; begin += kChunkElements) {
      if (interrupt_.raised()) return base::fail(base::ErrorKind::kInterrupted, "the merge was interrupted");
      const int64_t count = std::min(kChunkElements, source.count - begin);
      at::Tensor chunk = at::empty({count}, at::TensorOptions().dtype(type));
      TRY(reader_.read(source.stored, begin, begin + count, chunk));
      TRY(put({static_cast<const char*>(chunk.data_ptr()), chunk.nbytes()}));
      done_ += chunk.nbytes();
      if (options_.progress) options_.progress(done_, all_);
    }
    return base::ok();
  }
  base::Status put(std::string_view bytes) {
    hash_.update(bytes);
    file_.bytes += bytes.size();
    return write_bytes(fd_.get(), bytes, path_);
  }
  Reader& reader_;
  const MergeOptions& options_;
  const Interrupt& interrupt_;
  const uint64_t all_;
  uint64_t done_ = 0;
  os::Fd fd_;
  std::string path_;
  base::Sha256 hash_;
  FileRecord file_;
};

base::Result<Merged> merge_opened(Reader& reader, const MergeOptions& options, const Interrupt& interrupt) {
  auto reach = [&](std::string_view stage) {
    if (options.stage) options.stage(stage);
  };
  TRY_ASSIGN(Plan plan, make_plan(reader, options));
  std::vector<SmallFile> beside;
  if (options.beside) { TRY_ASSIGN(beside, options.beside(reader)); }
  TRY(check_target(options));
  Workplace workplace(options.folder);
  TRY(workplace.open());
  TRY(check_room(workplace.path(), plan.bytes + plan.bytes / 100 + (1 << 20)));
  reach("verify");
  TRY(reader.verify(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u))));

  Merged merged{options.folder, {}, plan.bytes, plan.tensors, false};
  ModelIndex index{plan.bytes, {}};
  Writer writer(reader, options, interrupt, plan.bytes);
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    reach("file");
    const std::string name = model_file(i + 1, plan.parts.size());
    TRY_ASSIGN(FileRecord file, writer.write(plan.parts[i], workplace.path() + "/" + name));
    merged.files.push_back({name, file});
    for (const TensorInfo& tensor : plan.parts[i].tensors) index.weight_map.emplace(tensor.name, name);
  }
  reach("index");
  if (plan.parts.size() > 1) TRY(write_durably(workplace.path() + "/" + std::string(kIndexFile), to_text(index)));
  for (const SmallFile& file : beside) TRY(write_durably(workplace.path() + "/" + file.name, file.text));
  merged.described = !beside.empty();
  reach("rename");
  TRY(check_target(options));  // again: hours may have passed
  TRY(workplace.publish(options.replace));
  return merged;
}

}  // namespace

base::Result<Merged> merge(const MergeOptions& options, const Interrupt& interrupt) {
  TRY_ASSIGN(Reader reader, Reader::open(options.checkpoint));
  return merge_opened(reader, options, interrupt);
}

std::future<base::Result<Merged>> merge_in_background(MergeOptions options, const Interrupt& interrupt) {
  auto reader = std::make_shared<base::Result<Reader>>(Reader::open(options.checkpoint));
  return std::async(std::launch::async, [reader, options = std::move(options), &interrupt]() -> base::Result<Merged> {
    if (!reader->ok()) return std::move(*reader).error();
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
    try {
      return merge_opened(**reader, options, interrupt);
    } catch (const std::exception& failure) {
      return base::fail(base::ErrorKind::kInternal, "merging failed").because(base::printable(failure.what(), 400));
    }
  });
}

}  // namespace phalanx::engine::checkpoint
