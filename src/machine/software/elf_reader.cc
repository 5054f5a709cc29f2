#include "machine/software/elf_reader.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "os/fd.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostSections = 4096;
constexpr size_t kMostDynamic = 4096;
constexpr size_t kMostNeeds = 4096;
constexpr size_t kMostEntries = 64;    // code of one module in a fat binary
constexpr size_t kQuietModules = 256;  // in a row without a new architecture
constexpr uint32_t kFatbinMagic = 0xba55ed50;

// A struct at an offset, copied: files may be of any alignment.
template <typename T>
bool take(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

std::string_view part(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.substr(offset, size);
}

std::string_view text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  std::string_view rest = table.substr(offset, 4096);
  return rest.substr(0, rest.find('\0'));
}

std::optional<Elf64_Ehdr> header(std::string_view bytes) {
  Elf64_Ehdr h;
  if (!take(bytes, 0, h) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB) return std::nullopt;
  return h;
}

template <typename Visit>  // bool visit(const Elf64_Shdr&, name): false ends
void each_section(std::string_view bytes, const Elf64_Ehdr& h, Visit visit) {
  Elf64_Shdr names;
  if (h.e_shoff == 0 || h.e_shentsize < sizeof(Elf64_Shdr)) return;
  if (!take(bytes, h.e_shoff + uint64_t{h.e_shstrndx} * h.e_shentsize, names)) return;
  std::string_view table = part(bytes, names.sh_offset, names.sh_size);
  for (size_t i = 0; i < std::min<size_t>(h.e_shnum, kMostSections); ++i) {
    Elf64_Shdr section;
    if (!take(bytes, h.e_shoff + i * h.e_shentsize, section)) return;
    if (!visit(section, text_at(table, section.sh_name))) return;
  }
}

std::string highest_glibc(std::string_view needs, std::string_view strings) {
  std::string highest;
  uint64_t at = 0;
  for (size_t n = 0; n < kMostNeeds; ++n) {
    Elf64_Verneed need;
    if (!take(needs, at, need)) break;
    uint64_t aux_at = at + need.vn_aux;
    for (size_t a = 0; a < need.vn_cnt && a < kMostNeeds; ++a) {
      Elf64_Vernaux aux;
      if (!take(needs, aux_at, aux)) break;
      std::string_view name = text_at(strings, aux.vna_name);
      if (name.starts_with("GLIBC_2.") && version_less(highest, name.substr(6))) highest = name.substr(6);
      if (aux.vna_next == 0) break;
      aux_at += aux.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  return highest;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) return;
  void* at = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) return;
  ::madvise(at, static_cast<size_t>(info.st_size), MADV_RANDOM);  // headers far apart: no read-ahead of what lies between
  data_ = static_cast<const char*>(at);
  size_ = static_cast<size_t>(info.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

std::optional<std::string_view> elf_section(std::string_view bytes, std::string_view name) {
  std::optional<Elf64_Ehdr> h = header(bytes);
  std::optional<std::string_view> found;
  if (!h) return found;
  each_section(bytes, *h, [&](const Elf64_Shdr& section, std::string_view section_name) {
    if (section_name != name || section.sh_type == SHT_NOBITS) return true;
    std::string_view data = part(bytes, section.sh_offset, section.sh_size);
    if (!data.empty()) found = data;
    return false;
  });
  return found;
}

std::optional<ElfDynamic> elf_dynamic(std::string_view bytes) {
  std::optional<Elf64_Ehdr> h = header(bytes);
  if (!h) return std::nullopt;
  std::string_view dynamic, strings, needs;
  each_section(bytes, *h, [&](const Elf64_Shdr& section, std::string_view name) {
    if (section.sh_type == SHT_DYNAMIC) dynamic = part(bytes, section.sh_offset, section.sh_size);
    if (section.sh_type == SHT_STRTAB && name == ".dynstr") strings = part(bytes, section.sh_offset, section.sh_size);
    if (section.sh_type == SHT_GNU_verneed) needs = part(bytes, section.sh_offset, section.sh_size);
    return true;
  });
  ElfDynamic all;
  for (size_t i = 0; i < kMostDynamic; ++i) {
    Elf64_Dyn entry;
    if (!take(dynamic, i * sizeof(entry), entry) || entry.d_tag == DT_NULL) break;
    std::string_view text = text_at(strings, entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED) all.needed.emplace_back(text);
    if (entry.d_tag == DT_SONAME) all.soname = text;
    if (entry.d_tag == DT_RPATH) all.rpath = text;
    if (entry.d_tag == DT_RUNPATH) all.runpath = text;
  }
  all.glibc = highest_glibc(needs, strings);
  return all;
}

std::vector<std::string> fatbin_archs(std::string_view section, size_t max_modules) {
  struct Container {  // struct fatBinaryHeader, as in NVIDIA's fatbinary.h
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
  };
  struct Entry {             // before each piece of code; the fields up to the architecture
    uint16_t kind, unknown;  // kind 1: PTX, 2: machine code
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, unknown2;
    uint16_t minor, major;
    uint32_t arch;
  };
  std::set<std::pair<uint32_t, bool>> seen;
  size_t quiet = 0, padding = 0;
  uint64_t at = 0;
  for (size_t module = 0; module < max_modules && quiet < kQuietModules;) {
    Container c;
    if (!take(section, at, c)) break;
    if (c.magic != kFatbinMagic) {  // padding between modules
      if (c.magic != 0 || ++padding > max_modules) break;
      at += 8;
      continue;
    }
    if (c.header_size < sizeof(Container) || c.size > section.size()) break;
    size_t before = seen.size();
    uint64_t entry_at = at + c.header_size, end = entry_at + c.size;
    for (size_t i = 0; i < kMostEntries && entry_at < end; ++i) {
      Entry e;
      if (!take(section, entry_at, e) || e.header_size < sizeof(Entry) || e.size > section.size()) break;
      if ((e.kind == 1 || e.kind == 2) && e.arch >= 10 && e.arch < 1000) seen.insert({e.arch, e.kind == 1});
      entry_at += e.header_size + e.size;
    }
    quiet = seen.size() == before ? quiet + 1 : 0;
    ++module;
    at = end;
  }
  std::vector<std::string> archs;
  for (bool ptx : {false, true})
    for (const auto& [arch, is_ptx] : seen)
      if (is_ptx == ptx) archs.push_back((ptx ? "compute_" : "sm_") + std::to_string(arch));
  return archs;
}

std::string nccl_version_in(std::string_view text) {
  constexpr std::string_view kMark = "NCCL version ";
  for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    std::string_view rest = text.substr(at + kMark.size(), 48);
    size_t end = rest.find_first_not_of("0123456789.");
    if (end == std::string_view::npos || end < 3 || rest[0] < '0' || rest[0] > '9') continue;  // "NCCL version mismatch …"
    if (rest.substr(end).starts_with("+cuda")) {
      size_t stop = rest.find_first_not_of("0123456789.", end + 5);
      return std::string(rest.substr(0, stop));
    }
    if (rest[end] == '\0' || rest[end] == '\n') return std::string(rest.substr(0, end));
  }
  return "";
}

bool version_less(std::string_view a, std::string_view b) {
  auto number = [](std::string_view& text) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      if (value < 1'000'000'000'000) value = value * 10 + static_cast<uint64_t>(text[i] - '0');
    bool dot = i < text.size() && text[i] == '.';
    text = dot ? text.substr(i + 1) : std::string_view();
    return value;
  };
  while (!a.empty() || !b.empty()) {
    uint64_t x = number(a), y = number(b);
    if (x != y) return x < y;
  }
  return false;
}

}  // namespace phalanx::machine
