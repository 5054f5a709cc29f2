#include "codes/code.h"

#include <strings.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

std::span<const Code> all() {
  static const std::vector<Code> codes = [] {
    static std::string text(unpack(packed_pages()));
    std::vector<Code> out;
    for (std::string_view row : base::split_lines(text)) {
      Code& code = out.emplace_back();
      code.name = next_cell(row);
      const base::Result<int64_t> group = base::parse_int(next_cell(row), 0, static_cast<int64_t>(groups().size()) - 1);
      PHALANX_CHECK(group.ok());
      code.group = &groups()[static_cast<size_t>(*group)];
      for (base::Bilingual* both : {&code.title, &code.question, &code.why, &code.fix}) {
        both->english = next_cell(row);
        both->chinese = next_cell(row);
      }
      code.source = next_cell(row);
    }
    for (char& c : text)
      if (c == kLineInCell) c = '\n';
    return out;
  }();
  return codes;
}

const Code* find(std::string_view name) {
  for (const Code& code : all())
    if (code.name.size() == name.size() && ::strncasecmp(code.name.data(), name.data(), name.size()) == 0) return &code;
  return nullptr;
}

const Code& get(std::string_view name) {
  const Code* code = find(name);
  PHALANX_CHECK(code != nullptr);
  return *code;
}

}  // namespace phalanx::codes
