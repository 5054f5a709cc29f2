#include "diagnosis/cause.h"

#include "base/text.h"

namespace diagnosis {

std::vector<const Cause*> causes() {
  std::vector<const Cause*> all;
  for (std::span<const Cause> rows : {end_causes(), hang_causes(), nccl_causes()})
    for (const Cause& cause : rows) all.push_back(&cause);
  return all;
}

const Cause* find_cause(std::string_view code) {
  for (const Cause* cause : causes())
    if (base::to_lower(cause->code) == base::to_lower(code)) return cause;
  return nullptr;
}

}  // namespace diagnosis
