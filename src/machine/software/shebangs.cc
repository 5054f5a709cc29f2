// Scripts of an environment whose first line leads out of it: what moving a folder by tar or scp leaves behind.
#include "base/text.h"
#include "machine/software/elf_reader.h"
#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostScripts = 8192;
constexpr size_t kMostTold = 32;
constexpr size_t kHead = 512;
constexpr size_t kOldLimit = 127;  // bytes of the first line that kernels before 5.1 read
constexpr size_t kLimit = 255;     // and later ones (BINPRM_BUF_SIZE 256)

}  // namespace

void read_shebangs(const Rooted& files, SoftwareFacts& facts) {
  if (facts.environment_kind != "conda" && facts.environment_kind != "venv") return;
  std::string kernel = std::string(base::trim(files.read("/proc/sys/kernel/osrelease", 256).value_or("")));
  size_t limit = !kernel.empty() && version_less(kernel, "5.1") ? kOldLimit : kLimit;
  std::string bin = facts.prefix + "/bin", real_bin = files.resolve(bin);
  for (const std::string& name : files.list(bin, kMostScripts)) {
    if (facts.shebangs.size() >= kMostTold) return;
    std::string script = bin + "/" + name;
    std::optional<std::string> head = files.read(script, kHead);
    if (!head || !head->starts_with("#!")) continue;
    std::vector<std::string_view> lines = base::split_lines(*head);
    std::string_view line = lines[0].substr(2);
    bool through_shell = lines.size() > 1 && lines[1].starts_with("'''exec' ");
    std::string unquoted = base::replace_all(through_shell ? lines[1].substr(9) : line, "\"", " ");
    std::vector<std::string_view> words = base::split_words(unquoted);
    if (words.empty() || words[0][0] != '/' || !is_python_name(words[0])) continue;
    std::string interpreter(words[0]);
    std::string why;
    if (!files.exists(interpreter)) why = "does not exist";
    else if (files.resolve(std::string(folder_of(interpreter))) != real_bin) why = "is another environment's";
    else if (!through_shell && lines[0].size() > limit) why = "is longer than " + std::to_string(limit) + " bytes";
    if (!why.empty()) facts.shebangs.push_back({script, interpreter, why});
  }
}

}  // namespace phalanx::machine
