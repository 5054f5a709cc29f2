#include "doctor/views/known_keys.h"

#include <algorithm>

#include "base/text.h"
#include "codes/values.h"

namespace phalanx::doctor {

std::vector<Misspelt> misspelt_keys(const base::Json& object, std::string_view section) {
  std::vector<Misspelt> found;
  if (!object.is_object()) return found;
  const codes::ValueTable& table = codes::values("config-keys");
  std::vector<std::string> known;
  for (size_t i = 0; i < table.size(); ++i)
    if (table.row(i)[0] == section) known.emplace_back(table.row(i)[1]);
  for (auto it = object.begin(); it != object.end() && found.size() < 16; ++it) {
    if (std::find(known.begin(), known.end(), it.key()) != known.end()) continue;
    if (auto near = base::closest(it.key(), known)) found.push_back({it.key(), *near});
  }
  return found;
}

}  // namespace phalanx::doctor
