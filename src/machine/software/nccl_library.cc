// The NCCL that torch would load, in the order of ld.so(8): LD_PRELOAD; DT_RPATH of libtorch_cuda.so where it has no DT_RUNPATH;
// LD_LIBRARY_PATH; DT_RUNPATH; the system's folders. pip wheels of torch have a DT_RPATH, conda packages and own builds
// mostly a DT_RUNPATH: only then can LD_LIBRARY_PATH put another library first.
#include <algorithm>

#include "base/text.h"
#include "machine/software/elf_reader.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostFolders = 128;  // of one search path
constexpr size_t kMostLibraries = 16;
constexpr size_t kMostNames = 4096;
constexpr size_t kConstants = 64 << 20;  // of a library's .rodata that are searched

std::string variable(const ProbeRequest& request, const std::string& name) {
  auto found = request.environment.find(name);
  return found == request.environment.end() ? "" : found->second;
}

std::vector<std::string> folders(std::string_view path, const std::string& origin, const std::string& directory) {
  std::vector<std::string> all;
  if (path.empty()) return all;
  std::string colons = base::replace_all(path, ";", ":");
  for (std::string_view part : base::split(colons, ':')) {
    if (all.size() >= kMostFolders) break;
    std::string folder = base::replace_all(base::replace_all(part, "${ORIGIN}", origin), "$ORIGIN", origin);
    all.push_back(absolute_path(folder, directory));
  }
  return all;
}

std::vector<std::string> system_folders(const Rooted& files) {
  std::vector<std::string> all;
  auto take = [&](const std::string& file) {
    std::string text = files.read(file, 64 << 10).value_or("");
    for (std::string_view line : base::split_lines(text))
      if (line = base::trim(line); line.starts_with('/') && all.size() < kMostFolders) all.emplace_back(line);
  };
  take("/etc/ld.so.conf");
  for (const std::string& name : files.list("/etc/ld.so.conf.d", 256))
    if (name.ends_with(".conf")) take("/etc/ld.so.conf.d/" + name);
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    all.emplace_back(folder);
  return all;
}

class Libraries {
 public:
  Libraries(const Rooted& files, SoftwareFacts& facts) : files_(files), facts_(facts) {}

  void add(const std::string& path, const std::string& way) {
    std::string real = files_.resolve(path);
    if (real.empty() || facts_.nccl.size() >= kMostLibraries || std::find(seen_.begin(), seen_.end(), real) != seen_.end()) return;
    seen_.push_back(real);
    MappedFile file(files_.on_disk(real));
    std::optional<std::string_view> constants = elf_section(file.bytes(), ".rodata");
    facts_.nccl.push_back({path, constants ? nccl_version_in(constants->substr(0, kConstants)) : ""});
    facts_.nccl_ways.push_back(way);
  }
  void add_from(const std::vector<std::string>& where, const std::string& way) {
    for (const std::string& folder : where) add(folder + "/libnccl.so.2", way);
  }

 private:
  const Rooted& files_;
  SoftwareFacts& facts_;
  std::vector<std::string> seen_;
};

// CUDA's own libraries in LD_LIBRARY_PATH: they come before those of torch's wheels wherever those say RUNPATH.
void read_cuda_libraries(const Rooted& files, const std::vector<std::string>& where, SoftwareFacts& facts) {
  for (const std::string& folder : where) {
    for (const std::string& name : files.list(folder, kMostNames)) {
      size_t so = name.find(".so.");
      if (so == std::string::npos || facts.cuda_libraries.size() >= 64) continue;
      std::string_view stem = std::string_view(name).substr(0, so);
      bool known = false;
      for (std::string_view wanted : {"libcudart", "libcublas", "libcublasLt", "libcusparse", "libnvJitLink", "libcudnn", "libnvrtc"})
        known = known || stem == wanted;
      if (!known || name.find('.', so + 4) != std::string::npos) continue;  // by its soname only, libcublas.so.12
      std::string real(name_of(files.resolve(folder + "/" + name)));
      size_t version = real.find(".so.");
      if (version != std::string::npos) facts.cuda_libraries.push_back({folder + "/" + name, real.substr(version + 4)});
    }
  }
}

}  // namespace

void read_nccl_libraries(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts) {
  Libraries found(files, facts);
  std::vector<std::string> library_path = folders(variable(request, "LD_LIBRARY_PATH"), "", request.directory);
  read_cuda_libraries(files, library_path, facts);
  std::string preload = base::replace_all(variable(request, "LD_PRELOAD"), ":", " ");
  for (std::string_view file : base::split_words(preload))
    if (name_of(file).starts_with("libnccl.so")) found.add(absolute_path(file, request.directory), "LD_PRELOAD");
  std::string lib = facts.torch_folder.empty() ? "" : files.resolve(facts.torch_folder + "/lib/libtorch_cuda.so");
  ElfDynamic torch;
  if (!lib.empty()) {
    MappedFile file(files.on_disk(lib));
    if (std::optional<ElfDynamic> dynamic = elf_dynamic(file.bytes())) {
      torch = *std::move(dynamic);
      bool needs = std::any_of(torch.needed.begin(), torch.needed.end(), [](const std::string& n) { return n.starts_with("libnccl.so"); });
      facts.torch_nccl = needs ? "dynamic" : "static";
    }
  }
  std::string origin(folder_of(lib));
  if (torch.runpath.empty()) found.add_from(folders(torch.rpath, origin, "/"), "RPATH of libtorch_cuda.so");
  found.add_from(library_path, "LD_LIBRARY_PATH");
  found.add_from(folders(torch.runpath, origin, "/"), "RUNPATH of libtorch_cuda.so");
  if (facts.environment_kind == "conda") found.add(facts.prefix + "/lib/libnccl.so.2", "the environment's lib");
  found.add_from(system_folders(files), "the system's folders");
  for (const std::string& folder : facts.site_packages) found.add(folder + "/nvidia/nccl/lib/libnccl.so.2", "the wheel of nvidia-nccl");
}

}  // namespace phalanx::machine
