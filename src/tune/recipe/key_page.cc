#include "tune/recipe/key_page.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/text.h"
#include "tune/recipe/key_table.h"

namespace phalanx::tune {
namespace {

constexpr const char* kHead = R"(# Every key of LLaMA-Factory's YAML

Printed by `phalanx-train keys`, and held against it by a test. Keys that are in none of the tables are refused, with the nearest name.
[The guide](guides/from-llama-factory.md) says how to use them.
)";

// A default as YAML writes it; "" for none.
std::string default_of(const RecipeKey& key) {
  const Recipe defaults;
  return std::visit(
      [&](auto field) -> std::string {
        using T = decltype(field);
        if constexpr (std::is_same_v<T, std::monostate>) return "";
        else if constexpr (std::is_same_v<T, std::vector<std::string> Recipe::*>) return base::join(defaults.*field, ",");
        else if constexpr (std::is_same_v<T, std::optional<int64_t> Recipe::*>) return "";
        else if constexpr (std::is_same_v<T, std::optional<std::string> Recipe::*>) return "";
        else if constexpr (std::is_same_v<T, FileOrTree Recipe::*>) return "";
        else return fmt::format("{}", defaults.*field);
      },
      key.field);
}

std::string in_code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

std::string row(const RecipeKey& key) {
  std::string values = base::replace_all(key.choices, " ", ", ");
  if (key.least != 0 || key.most != 0) values = fmt::format("{} to {}", key.least, key.most);
  if (key.handling == Handling::kHonoured)
    return fmt::format("| `{}` | {} | {} | {} |\n", key.key, in_code(default_of(key)), values, key.note);
  return fmt::format("| `{}` | {} |\n", key.key, key.note);
}

std::string table(Handling handling, const char* head) {
  std::string out = head;
  for (const RecipeKey& key : recipe_keys())
    if (key.handling == handling) out += row(key);
  return out;
}

}  // namespace

std::string key_page() {
  return kHead + table(Handling::kHonoured, "\n## Honoured\n\n| key | default | values | sets |\n|---|---|---|---|\n") +
         table(Handling::kMeaningless, "\n## Accepted without effect\n\nNamed once at the start of a run.\n\n| key | why |\n|---|---|\n") +
         table(Handling::kRefused,
               "\n## Refused\n\nUnless the value asks for nothing: `null`, `false`, empty, or what is the only choice "
               "anyway.\n\n| key | why |\n|---|---|\n");
}

}  // namespace phalanx::tune
