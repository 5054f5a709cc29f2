// The keys of LLaMA-Factory's YAML and what becomes of each.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "tune/recipe/recipe.h"

namespace phalanx::tune {

// Where an honoured key's value goes; its type is the key's type.
using Field = std::variant<std::monostate, bool Recipe::*, int64_t Recipe::*, double Recipe::*, std::string Recipe::*,
                           std::vector<std::string> Recipe::*, std::optional<int64_t> Recipe::*, std::optional<double> Recipe::*,
                           std::optional<std::string> Recipe::*, FileOrTree Recipe::*>;

struct RecipeKey {
  std::string_view key;
  Handling handling = Handling::kHonoured;
  // kHonoured: what it sets. kMeaningless: why. kRefused: the reason, where its value is none of null, false, empty and `harmless`.
  std::string_view note;
  Field field = {};
  double least = 0, most = 0;      // of numbers; both 0: any
  std::string_view choices = {};   // of texts, separated by blanks; empty: any
  std::string_view harmless = {};  // a value of a refused key that asks for nothing
};

std::span<const RecipeKey> recipe_keys();

}  // namespace phalanx::tune
