// What torch was built for, from its version.py and the headers of its libraries.
#include "base/text.h"
#include "machine/software/elf_reader.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

// "12.1" of "cuda = '12.1'" or "cuda: Optional[str] = '12.1'"; "None" of "cuda = None".
std::string assigned(std::string_view text, std::string_view name) {
  for (std::string_view line : base::split_lines(text)) {
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    char next = line[name.size()];
    if (next != ' ' && next != ':' && next != '=') continue;
    size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view value = base::trim(line.substr(equals + 1, 256));
    if (value.size() >= 2 && (value[0] == '\'' || value[0] == '"')) value = value.substr(1, value.find(value[0], 1) - 1);
    return std::string(value);
  }
  return "";
}

void need_glibc(SoftwareFacts& facts, const std::string& path, std::string_view bytes) {
  std::optional<ElfDynamic> dynamic = elf_dynamic(bytes);
  if (!dynamic || !version_less(facts.glibc_needed, dynamic->glibc)) return;
  facts.glibc_needed = dynamic->glibc;
  facts.glibc_needed_by = path;
}

}  // namespace

void read_torch(const Rooted& files, SoftwareFacts& facts) {
  need_glibc(facts, facts.interpreter, MappedFile(files.on_disk(facts.interpreter)).bytes());
  for (const std::string& folder : facts.site_packages) {
    std::optional<std::string> text = files.read(folder + "/torch/version.py", 64 << 10);
    if (!text) continue;
    facts.torch_folder = folder + "/torch";
    std::string version = assigned(*text, "__version__");
    if (!version.empty()) facts.packages.emplace("torch", version);
    std::string cuda = assigned(*text, "cuda"), hip = assigned(*text, "hip");
    facts.torch_cuda = !cuda.empty() && cuda != "None" ? cuda : !hip.empty() && hip != "None" ? "rocm" + hip : "cpu";
    facts.torch_git = assigned(*text, "git_version");
    break;
  }
  if (facts.torch_folder.empty()) return;
  for (const char* name : {"/lib/libc10.so", "/lib/libtorch_cpu.so"}) {
    std::string path = facts.torch_folder + name;
    need_glibc(facts, path, MappedFile(files.on_disk(path)).bytes());
  }
  MappedFile cuda(files.on_disk(facts.torch_folder + "/lib/libtorch_cuda.so"));
  if (std::optional<std::string_view> code = elf_section(cuda.bytes(), ".nv_fatbin")) facts.torch_archs = fatbin_archs(*code);
}

}  // namespace phalanx::machine
