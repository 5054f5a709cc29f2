#include "view/speech.h"

#include <initializer_list>

#include "base/text.h"

namespace phalanx::view {
namespace {

std::string first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment(name); !value.empty()) return value;
  return "";
}

}  // namespace

bool locale_is_utf8(const Environment& environment) {
  std::string locale = base::to_lower(first_set(environment, {"LC_ALL", "LC_CTYPE", "LANG"}));
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

Language choose_language(const Environment& environment) {
  Language language =
      base::choose_language(environment("PHALANX_LANG"), environment("LC_ALL"), environment("LC_MESSAGES"), environment("LANG"));
  bool asked_for = !environment("PHALANX_LANG").empty();
  return asked_for || locale_is_utf8(environment) ? language : Language::kEnglish;
}

}  // namespace phalanx::view
