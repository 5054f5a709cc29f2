#include "os/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace phalanx::os {
namespace {

std::string find_note(const char* note, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof(header));
    size_t name_size = (header.n_namesz + 3) & ~size_t{3}, content_size = (header.n_descsz + 3) & ~size_t{3};
    if (sizeof(header) + name_size + content_size > size) return "";
    const char* content = note + sizeof(header) + name_size;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(note + sizeof(header), "GNU", 4) == 0) {
      std::string hex;
      for (size_t i = 0; i < header.n_descsz; ++i) {
        hex += kDigits[static_cast<unsigned char>(content[i]) >> 4];
        hex += kDigits[content[i] & 15];
      }
      return hex;
    }
    note += sizeof(header) + name_size + content_size;
    size -= sizeof(header) + name_size + content_size;
  }
  return "";
}

int visit(dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    std::string id = find_note(reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
    if (id.empty()) continue;
    *static_cast<std::string*>(result) = id;
    return 1;
  }
  return 1;  // only the program itself, which comes first
}

}  // namespace

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(visit, &id);
  return id.empty() ? "unidentified" : id;
}

}  // namespace phalanx::os
