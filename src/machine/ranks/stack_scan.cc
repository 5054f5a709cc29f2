#include "machine/ranks/stack_scan.h"

#include <cxxabi.h>
#include <elf.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/rooted.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostMappings = 65'536;
constexpr size_t kMostMapsBytes = 8 << 20;
constexpr size_t kMostCandidates = 512;
constexpr size_t kMostName = 96;
constexpr uint64_t kLargestPage = 64 << 10;
constexpr size_t kCallBytes = 8;  // read in front of a return address

// Does the code end in a call? x86-64: E8 rel32, or FF /2 with its 2 to 7 bytes (Intel SDM, CALL). AArch64: BL, BLR.
bool ends_in_call(const unsigned char* code) {
#if defined(__x86_64__)
  if (code[kCallBytes - 5] == 0xe8) return true;
  for (size_t length = 2; length <= 7; ++length) {
    const unsigned char* at = code + kCallBytes - length;
    if (at[0] == 0xff && (at[1] & 0x38) == 0x10) return true;
  }
  return false;
#elif defined(__aarch64__)
  uint32_t word;
  std::memcpy(&word, code + kCallBytes - 4, 4);
  return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
#else
  return code == nullptr;
#endif
}

template <typename T>
bool take(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  for (std::string_view line : base::split_lines(text)) {
    if (maps.size() >= kMostMappings) break;
    std::vector<std::string_view> words = base::split_words(line.substr(0, 128));
    if (words.size() < 5 || words[1].size() < 4) continue;
    size_t dash = words[0].find('-');
    if (dash == std::string_view::npos) continue;
    Mapping m;
    m.begin = std::strtoull(std::string(words[0].substr(0, dash)).c_str(), nullptr, 16);
    m.end = std::strtoull(std::string(words[0].substr(dash + 1)).c_str(), nullptr, 16);
    m.offset = std::strtoull(std::string(words[2]).c_str(), nullptr, 16);
    size_t slash = line.find('/');
    if (words[1][2] == 'x' && slash != std::string_view::npos) m.path = std::string(line.substr(slash));
    if (m.begin < m.end) maps.push_back(std::move(m));
  }
  std::sort(maps.begin(), maps.end(), [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  return maps;
}

Symbols::Symbols(std::string_view file) {
  Elf64_Ehdr h;
  if (!take(file, 0, h) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (unsigned i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p;
    if (!take(file, h.e_phoff + uint64_t{i} * sizeof(p), p)) break;
    if (p.p_type != PT_LOAD) continue;
    segments_.emplace_back(p.p_offset, p.p_vaddr);
    sizes_.push_back(p.p_filesz);
  }
  table_ = elf_section(file, ".dynsym").value_or("");
  names_ = elf_section(file, ".dynstr").value_or("");
}

std::string Symbols::at_file_offset(uint64_t offset) const {
  uint64_t address = 0;
  for (size_t i = 0; i < segments_.size(); ++i)
    if (offset >= segments_[i].first && offset - segments_[i].first < sizes_[i])
      address = segments_[i].second + (offset - segments_[i].first);
  if (address == 0) return "";
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table_.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s;
    std::memcpy(&s, table_.data() + at, sizeof(s));
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || address < s.st_value || address - s.st_value >= s.st_size)
      continue;
    if (s.st_name >= names_.size()) return "";
    std::string_view rest = names_.substr(s.st_name, 4096);
    return std::string(rest.substr(0, rest.find('\0')));
  }
  return "";
}

std::optional<uint64_t> Symbols::address_of(std::string_view name) const {
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table_.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s;
    std::memcpy(&s, table_.data() + at, sizeof(s));
    if (s.st_shndx == SHN_UNDEF || s.st_name >= names_.size()) continue;
    std::string_view rest = names_.substr(s.st_name, name.size() + 1);
    if (rest.size() == name.size() + 1 && rest.back() == '\0' && rest.starts_with(name)) return s.st_value;
  }
  return std::nullopt;
}

std::optional<uint64_t> Symbols::added_by(const Mapping& mapping) const {
  for (const auto& [offset, address] : segments_)  // a segment starts in the first page of its mapping
    if (offset >= mapping.offset && offset - mapping.offset < kLargestPage) return mapping.begin + (offset - mapping.offset) - address;
  return std::nullopt;
}

std::string plain_function(const std::string& symbol) {
  std::string name = symbol;
  int status = -1;
  if (char* shown = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status)) {
    if (status == 0) name = shown;
    std::free(shown);
  }
  std::string plain;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
      if (plain.ends_with("::")) plain.resize(plain.size() - 2);
      continue;
    }
    if (name[i] == '<') ++depth;
    if (depth == 0 && name[i] == '(') break;
    if (depth == 0) plain += name[i];
    if (name[i] == '>' && depth > 0) --depth;
  }
  if (size_t blank = plain.rfind(' '); blank != std::string::npos && blank + 1 < plain.size()) plain.erase(0, blank + 1);  // a return type
  return base::printable(plain, kMostName);
}

StackScan::StackScan(pid_t pid) : pid_(pid) {
  base::Result<std::string> text = os::read_file(fmt::format("/proc/{}/maps", pid), kMostMapsBytes);
  if (text.ok()) maps_ = parse_maps(*text);
}

const Mapping* StackScan::executable(uint64_t address) const {
  auto after = std::upper_bound(maps_.begin(), maps_.end(), address, [](uint64_t a, const Mapping& m) { return a < m.begin; });
  if (after == maps_.begin()) return nullptr;
  const Mapping& m = *std::prev(after);
  return address < m.end && !m.path.empty() ? &m : nullptr;
}

std::string StackScan::name_of(const Mapping& mapping, uint64_t address) {
  auto known = names_.find(address);
  if (known != names_.end()) return known->second;
  Module& module = modules_[mapping.path];
  if (!module.file) {
    module.file = std::make_unique<MappedFile>(fmt::format("/proc/{}/root{}", pid_, mapping.path));
    module.symbols = std::make_unique<Symbols>(module.file->bytes());
  }
  uint64_t offset = address - mapping.begin + mapping.offset;
  std::string symbol = module.symbols->at_file_offset(offset);
  std::string name =
      fmt::format("{}!{}", machine::name_of(mapping.path), symbol.empty() ? fmt::format("+{:#x}", offset) : plain_function(symbol));
  return names_.emplace(address, std::move(name)).first->second;
}

std::vector<std::string> StackScan::frames(uint64_t sp, uint64_t pc, size_t stack_bytes, size_t most) {
  std::vector<std::string> found;
  if (const Mapping* here = executable(pc)) found.push_back(name_of(*here, pc));
  auto after = std::upper_bound(maps_.begin(), maps_.end(), sp, [](uint64_t a, const Mapping& m) { return a < m.begin; });
  if (after == maps_.begin() || sp >= std::prev(after)->end) return found;
  std::vector<uint64_t> words(std::min<uint64_t>(stack_bytes, std::prev(after)->end - sp) / 8);
  iovec into{words.data(), words.size() * 8}, from{reinterpret_cast<void*>(sp), words.size() * 8};
  ssize_t got = ::process_vm_readv(pid_, &into, 1, &from, 1, 0);
  if (got <= 0) return found;
  words.resize(static_cast<size_t>(got) / 8);
  std::vector<uint64_t> candidates;
  for (uint64_t word : words)
    if (candidates.size() < kMostCandidates && word > kCallBytes && executable(word) && executable(word - kCallBytes))
      candidates.push_back(word);
  std::vector<unsigned char> code(candidates.size() * kCallBytes);
  std::vector<iovec> places;
  for (uint64_t word : candidates) places.push_back({reinterpret_cast<void*>(word - kCallBytes), kCallBytes});
  iovec all{code.data(), code.size()};
  got = candidates.empty() ? 0 : ::process_vm_readv(pid_, &all, 1, places.data(), places.size(), 0);
  for (size_t i = 0; got > 0 && i < static_cast<size_t>(got) / kCallBytes && found.size() < most; ++i) {
    if (!ends_in_call(code.data() + i * kCallBytes)) continue;
    std::string name = name_of(*executable(candidates[i]), candidates[i] - 1);
    if (found.empty() || found.back() != name) found.push_back(std::move(name));
  }
  return found;
}

}  // namespace phalanx::machine
