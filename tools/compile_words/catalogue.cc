#include "compile_words/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "base/yaml.h"

namespace phalanx::words {
namespace {

struct Place {
  size_t index = 0;
  std::string spec;  // ":.1f"
};

struct Places {
  std::vector<Place> list;
  bool numbered = false;
};

base::Error wrong(const std::string& what) { return base::fail(base::ErrorKind::kConfig, what); }

base::Result<Places> places_of(std::string_view text) {
  Places places;
  size_t automatic = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{' && text[i] != '}') continue;
    if (i + 1 < text.size() && text[i + 1] == text[i]) {
      ++i;
      continue;
    }
    size_t end = text.find('}', i);
    if (text[i] == '}' || end == std::string_view::npos) return wrong("a brace without its pair");
    std::string_view inside = text.substr(i + 1, end - i - 1), number = inside.substr(0, inside.find(':'));
    size_t index = automatic;
    if (number.empty()) {
      ++automatic;
    } else {
      TRY_ASSIGN(int64_t given, base::parse_int(number, 0, 63, base::ErrorKind::kConfig));
      index = static_cast<size_t>(given);
      places.numbered = true;
    }
    places.list.push_back({index, std::string(inside.substr(number.size()))});
    i = end;
  }
  if (places.numbered && automatic > 0) return wrong("{} and {0} in one text");
  return places;
}

size_t most_of(const Places& places) {
  size_t most = 0;
  for (const Place& place : places.list) most = std::max(most, place.index + 1);
  return most;
}

}  // namespace

base::Status fits(std::string_view english, std::string_view chinese) {
  TRY_ASSIGN(Places there, places_of(english));
  TRY_ASSIGN(Places here, places_of(chinese));
  if (!here.numbered && here.list.size() != there.list.size())
    return wrong(fmt::format("the English has {} arguments, the Chinese {}; number them, {{0}}, to leave one out", there.list.size(),
                             here.list.size()));
  const size_t after = most_of(there);  // a last argument that only the Chinese names: words::chinese_only
  for (const Place& place : here.list) {
    bool found = place.index == after && place.spec.empty();
    for (const Place& other : there.list) found = found || (other.index == place.index && other.spec == place.spec);
    if (!found) return wrong(fmt::format("the English has no {{{}{}}}", place.index, place.spec));
  }
  return base::ok();
}

size_t arguments_of(std::string_view text) {
  base::Result<Places> places = places_of(text);
  return places.ok() ? most_of(*places) : 0;
}

base::Status add_file(std::string_view name, std::string_view yaml, Catalogue* all) {
  TRY_ASSIGN(base::Yaml file, base::parse_yaml(yaml));
  if (!file.value.is_array()) return wrong("is not a list of {en, zh}");
  size_t number = 0;
  for (const base::Json& row : file.value) {
    ++number;
    std::optional<std::string> english, chinese;
    if (row.is_object() && row.size() == 2) {
      english = base::get_string(row, "en");
      chinese = base::get_string(row, "zh");
    }
    if (!english || !chinese || english->empty() || chinese->empty()) return wrong(fmt::format("entry {} is not {{en, zh}}", number));
    auto entry = [&](const std::string& what) { return wrong(fmt::format("\"{}\": {}", *english, what)); };
    if (base::Status fit = fits(*english, *chinese); !fit.ok()) return entry(fit.error().message);
    auto [had, added] = all->emplace(*english, Translation{*chinese, std::string(name)});
    if (!added) return entry("is in " + had->second.file + " already");
  }
  return base::ok();
}

std::string table_text(const Catalogue& all) {
  std::string english, chinese;
  for (const auto& [key, translation] : all) {
    english.append(key).push_back('\0');
    chinese.append(translation.chinese).push_back('\0');
  }
  return english + chinese;
}

}  // namespace phalanx::words
