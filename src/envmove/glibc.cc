#include "envmove/glibc.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kMostSections = 4096, kMostTable = 64 << 20;
#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr const char* kFolders[] = {"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"};
#else
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr const char* kFolders[] = {"/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"};
#endif

bool read_whole(const os::Fd& file, void* to, size_t size, uint64_t from) {
  return from <= INT64_MAX && ::pread(file.get(), to, size, static_cast<off_t>(from)) == static_cast<ssize_t>(size);
}

// One table of a file that nobody vouches for: every read of it is within.
class Table {
 public:
  Table(const os::Fd& file, const Elf64_Shdr& section) {
    if (section.sh_size > kMostTable) return;
    bytes_.resize(section.sh_size);
    if (!read_whole(file, bytes_.data(), bytes_.size(), section.sh_offset)) bytes_.clear();
  }
  template <typename T>
  std::optional<T> at(uint64_t from) const {
    if (from > bytes_.size() || bytes_.size() - from < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + from, sizeof(T));
    return out;
  }
  std::string_view text(uint64_t from) const {
    if (from >= bytes_.size()) return "";
    const std::string_view rest = std::string_view(bytes_).substr(from);
    return rest.substr(0, std::min(rest.find('\0'), rest.size()));
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

Glibc version_of(std::string_view name) {
  constexpr std::string_view kName = "GLIBC_2.";
  if (!name.starts_with(kName)) return 0;
  name.remove_prefix(kName.size());
  const base::Result<int64_t> minor = base::parse_int(name.substr(0, name.find('.')), 0, 999);
  return minor.ok() ? 2000 + static_cast<Glibc>(*minor) : 0;
}

// One chain of entries, each with a chain of names below it.
Glibc highest_need(const Table& table, const Table& names) {
  Glibc highest = 0;
  size_t steps = table.size() / sizeof(Elf64_Vernaux);  // a chain that turns back ends
  for (uint64_t at = 0; steps-- > 0;) {
    const auto need = table.at<Elf64_Verneed>(at);
    if (!need) break;
    uint64_t below = at + need->vn_aux;
    for (size_t k = 0; k < need->vn_cnt && steps > 0; ++k, --steps) {
      const auto one = table.at<Elf64_Vernaux>(below);
      if (!one) break;
      if ((one->vna_flags & VER_FLG_WEAK) == 0) highest = std::max(highest, version_of(names.text(one->vna_name)));
      if (one->vna_next == 0) break;
      below += one->vna_next;
    }
    if (need->vn_next == 0) break;
    at += need->vn_next;
  }
  return highest;
}

Glibc highest_definition(const Table& table, const Table& names) {
  Glibc highest = 0;
  size_t steps = table.size() / sizeof(Elf64_Verdef);
  for (uint64_t at = 0; steps-- > 0;) {
    const auto one = table.at<Elf64_Verdef>(at);
    const auto name = one ? table.at<Elf64_Verdaux>(at + one->vd_aux) : std::nullopt;
    if (!name) break;
    highest = std::max(highest, version_of(names.text(name->vda_name)));
    if (one->vd_next == 0) break;
    at += one->vd_next;
  }
  return highest;
}

Glibc highest(const os::Fd& file, Elf64_Word kind, Glibc (*of)(const Table&, const Table&)) {
  Elf64_Ehdr head{};
  if (!file.valid() || !read_whole(file, &head, sizeof(head), 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != kMachine || head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shnum == 0 ||
      head.e_shnum > kMostSections)
    return 0;
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  if (!read_whole(file, sections.data(), sections.size() * sizeof(Elf64_Shdr), head.e_shoff)) return 0;
  for (const Elf64_Shdr& section : sections)
    if (section.sh_type == kind && section.sh_link < sections.size())
      return of(Table(file, section), Table(file, sections[section.sh_link]));
  return 0;
}

}  // namespace

std::string glibc_text(Glibc version) { return fmt::format("GLIBC_{}.{}", version / 1000, version % 1000); }
Glibc glibc_needed(const os::Fd& file) { return highest(file, SHT_GNU_verneed, highest_need); }
Glibc glibc_defined(const os::Fd& file) { return highest(file, SHT_GNU_verdef, highest_definition); }

Glibc glibc_here() {
  for (const char* folder : kFolders)
    if (const os::Fd file(::open(fmt::format("{}/libc.so.6", folder).c_str(), O_RDONLY | O_CLOEXEC)); file.valid())
      if (const Glibc version = glibc_defined(file); version > 0) return version;
  return 0;
}

}  // namespace phalanx::envmove
