// YAML through yaml-cpp, as base::Json. For configurations that other programs read (accelerate, LLaMA-Factory, Lightning):
// what PyYAML and its kin make of a plain word is what it becomes here.
//
// Limits against hostile text: bytes, 64 levels, and 100,000 values after aliases are put in, so that an alias bomb costs no more
// than an honest file. One document; a second one is left unread. yaml-cpp throws; nothing leaves this source.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace phalanx::base {

struct Yaml {
  Json value;                        // null for an empty text
  std::map<std::string, int> lines;  // of keys, from 1: "deepspeed_config.zero_stage" → 9; entries of lists are not named
  std::vector<std::string> twice;    // keys given twice in one mapping, by the same names; the last one counts
  bool more_documents = false;
};

// Plain words: null, ~ and nothing are null; true/false/yes/no/on/off are booleans; 10, 1_000, 0x1f, 0o17, 017 whole numbers; 1.5,
// 1e-4 and .inf numbers; all else, and everything quoted, text. Merge keys (<<) are merged. Error: kConfig "line 3, column 5: …".
Result<Yaml> parse_yaml(std::string_view text, size_t max_bytes = 1 << 20);

// A tree of what is written, for files whose every error names its place: words as they stand ("1.10" and "yes" stay what they are), places
// for keys and values alike.
struct YamlNode {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;  // kNull: a plain null or ~, or nothing
  std::string text;         // of kText
  int line = 1;             // both from 1
  int column = 1;
  std::vector<YamlNode> keys;   // of kMap: each kText, no two alike
  std::vector<YamlNode> items;  // of kList, and of kMap beside `keys`
};

// Stricter than parse_yaml: UTF-8, one document, at most 8 levels and 100,000 values; no anchors, aliases, merge keys, tags, zero bytes,
// keys given twice or quotes left open. Error: kConfig "line 3, column 5: …", "line 3: …", or without a place if the whole text is refused.
Result<YamlNode> parse_yaml_tree(std::string_view text, size_t max_bytes = 1 << 20);

}  // namespace phalanx::base
