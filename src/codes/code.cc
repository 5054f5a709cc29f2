#include "codes/code.h"

#include <strings.h>

#include <string>

#include "base/check.h"

namespace phalanx::codes {

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
