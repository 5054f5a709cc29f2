// Rules about other tools' configuration files, as data: codes/rules/*.yaml, compiled like the pages. doctor/config_rules.h applies them.
//
//   - code: CMD-DEEPSPEED-OFFLOAD       a check of codes/checks
//     file: deepspeed                   kind of file: accelerate, deepspeed, lightning, llamafactory
//     ranks: 2                          optional: only for jobs of at least so many ranks
//     when: [zero_optimization.offload_param.device is cpu|nvme, zero_optimization.stage below 3]       all must hold
//     default: zero_optimization.stage 0       optional: the whole number of a key that is missing or holds none
//     english: '{file}: offload_param to {=zero_optimization.offload_param.device}'
//     chinese: …
//     fix: "sed -i '…' {path}"          optional
//
// Conditions: KEY is A|B, KEY is-not A|B, KEY given, KEY missing, KEY no-text, KEY below N, KEY at-least N, KEY at-most N,
// KEY seconds A..B ("00:10:00" or a number of seconds). A word true or false is the truth value, another is a text or a whole number.
// In place of `when`, `keys` names the keys that the file may have (sections of codes/values/config-keys.tsv), and optionally `section`
// the object that has them: one finding for each key that is probably misspelt.
//
// Slots of the texts: {file} the file's name, {at} with the line of the first condition's key, {path} the quoted path for a command,
// {=KEY} a value, {seconds KEY}; of misspelt keys {key} with its section, {name} without, {meant}.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::codes {

struct ConfigRule {
  std::string_view code, file;
  int64_t ranks;
  std::string_view when;  // conditions, one a line
  std::string_view default_key;
  int64_t default_value;
  std::string_view keys, section;
  std::string_view english, chinese, fix;
};

// In the order of the files.
std::span<const ConfigRule> config_rules();

struct Condition {
  enum class Test { kIs, kIsNot, kGiven, kMissing, kNoText, kBelow, kAtLeast, kAtMost, kSeconds };
  std::string_view key;
  Test test;
  std::vector<std::string_view> words;  // of kIs, kIsNot
  int64_t low = 0, high = 0;            // of kSeconds; the others have their number in low
};
// Error (kConfig): what is wrong with it.
base::Result<Condition> parse_condition(std::string_view text);

// A rule as it is written. parse_config_rules is for the compiler of codes/ and its tests; the launcher has the compiled rules.
struct WrittenRule {
  std::string code, file, when, default_key, keys, section, english, chinese, fix;
  int64_t ranks = 0, default_value = 0;
};
// Error (kConfig): "rule 3: …", where a rule is not whole, or names a code that is not among `codes`, or an unknown field, kind of file,
// condition, section of keys or slot.
base::Result<std::vector<WrittenRule>> parse_config_rules(std::string_view yaml, const std::set<std::string>& codes,
                                                          const std::set<std::string>& sections);

}  // namespace phalanx::codes
