// 64-bit ELF libraries made by hand: sections with a given content, a dynamic section, a fat binary.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::machine::test {

template <typename T>
std::string raw(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// One module of a fat binary: kind (1: PTX, 2: machine code) and architecture of each piece.
inline std::string fatbin(const std::vector<std::pair<uint16_t, uint32_t>>& pieces) {
  std::string body;
  for (const auto& [kind, arch] : pieces) {
    std::string entry(64, '\0');
    uint32_t header = 64;
    uint64_t size = 24;
    std::memcpy(entry.data(), &kind, 2);
    std::memcpy(entry.data() + 4, &header, 4);
    std::memcpy(entry.data() + 8, &size, 8);
    std::memcpy(entry.data() + 28, &arch, 4);
    body += entry + std::string(size, 'c');
  }
  return raw(uint32_t{0xba55ed50}) + raw(uint16_t{1}) + raw(uint16_t{16}) + raw(uint64_t{body.size()}) + body;
}

// path_tag: DT_RPATH or DT_RUNPATH for `path`; 0: neither.
inline std::string library_file(std::vector<std::pair<std::string, std::string>> sections, const std::vector<std::string>& needed,
                                int path_tag, const std::string& path) {
  std::string strings(1, '\0'), dynamic;
  auto text = [&](const std::string& word) {
    uint64_t at = strings.size();
    strings += word + '\0';
    return at;
  };
  auto entry = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn d{};
    d.d_tag = tag;
    d.d_un.d_val = value;
    dynamic += raw(d);
  };
  for (const std::string& name : needed) entry(DT_NEEDED, text(name));
  if (path_tag != 0) entry(path_tag, text(path));
  entry(DT_NULL, 0);
  sections.emplace_back(".dynamic", dynamic);
  sections.emplace_back(".dynstr", strings);
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1, Elf64_Shdr{});
  std::string body;
  sections.emplace_back(".shstrtab", "");
  for (auto& [name, data] : sections) {
    Elf64_Shdr h{};
    h.sh_name = static_cast<uint32_t>(names.size());
    names += name + '\0';
    if (name == ".shstrtab") data = names;
    h.sh_type = name == ".dynamic" ? SHT_DYNAMIC : name.ends_with("str") || name == ".shstrtab" ? SHT_STRTAB : SHT_PROGBITS;
    h.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    h.sh_size = data.size();
    body += data;
    headers.push_back(h);
  }
  Elf64_Ehdr e{};
  std::memcpy(e.e_ident, ELFMAG, SELFMAG);
  e.e_ident[EI_CLASS] = ELFCLASS64;
  e.e_ident[EI_DATA] = ELFDATA2LSB;
  e.e_shoff = sizeof(Elf64_Ehdr) + body.size();
  e.e_shentsize = sizeof(Elf64_Shdr);
  e.e_shnum = static_cast<uint16_t>(headers.size());
  e.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  std::string file = raw(e) + body;
  for (const Elf64_Shdr& h : headers) file += raw(h);
  return file;
}

}  // namespace phalanx::machine::test
