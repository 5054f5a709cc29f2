#include "cli/project/write_project.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "logs/redact.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using words::Text;

constexpr Text kHead{"Defaults of phalanx in this directory and all below it. Options that are typed override them."};
constexpr Text kKeys{"The keys are the long options of phalanx run. phalanx config show --origin prints what is in effect."};
constexpr Text kHere{"no value: the one of this machine"};

bool plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./-=+,@").find(c) != std::string_view::npos;
}

// As a word of YAML that reads back as it is: bare where that is certain, else between double quotes.
std::string word(const std::string& value) {
  bool bare = !value.empty() && std::string_view("-=,@").find(value[0]) == std::string_view::npos;
  for (size_t i = 0; i < value.size() && bare; ++i)
    bare = plain_character(value[i]) || (value[i] == ':' && i + 1 < value.size() && plain_character(value[i + 1]));
  for (std::string_view nothing : {"null", "Null", "NULL"}) bare = bare && value != nothing;
  if (bare) return value;
  std::string out = "\"";
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out + "\"";
}

std::string entries(const FlagRow& flag, const std::vector<std::string>& values) {
  if (flag.optional_value && values[0].empty()) return fmt::format("{}: .\n", flag.name);
  if (!flag.repeatable) return fmt::format("{}: {}\n", flag.name, flag.kind == ValueKind::kNone ? "true" : word(values[0]));
  std::string out = fmt::format("{}:\n", flag.name);
  for (const std::string& value : values) out += fmt::format("  - {}\n", word(value));
  return out;
}

std::string variables(const std::vector<std::string>& assignments, base::Language language, std::vector<std::string>& secrets) {
  std::map<std::string, std::string> last;  // of a name given twice the later counts
  for (const std::string& one : assignments) last[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
  std::string out = "env:\n";
  for (const auto& [name, value] : last) {
    const bool secret = logs::keeps_secret(name, value);
    out += secret ? fmt::format("  {}:  # {}\n", name, kHere.in(language)) : fmt::format("  {}: {}\n", name, word(value));
    if (secret) secrets.push_back(name);
  }
  return out;
}

// One line or block for each key that is not set yet.
std::string examples(const std::vector<std::string_view>& set, base::Language language) {
  const std::pair<std::string_view, std::string> kExamples[] = {
      {"hosts", "# hosts: [gpu01:8, gpu02:8]\n"},
      {"iface", "# iface: bond0\n"},
      {"stall", "# stall: 10m\n"},
      {"accept", "# accept:\n#   - FS-SHM-SMALL\n"},
      {"env", fmt::format("# env:\n#   NCCL_DEBUG: WARN\n#   HF_TOKEN:  # {}\n", kHere.in(language))},
  };
  std::string out;
  for (const auto& [key, text] : kExamples)
    if (std::find(set.begin(), set.end(), key) == set.end()) out += text;
  return out.empty() ? "" : "\n" + out;
}

}  // namespace

WrittenProject project_text(const Invocation& invocation, base::Language language) {
  WrittenProject out;
  std::string body;
  std::vector<std::string_view> set;
  for (const FlagRow& flag : flag_table()) {
    if (!is_project_key(flag)) continue;
    const std::vector<std::string> values = invocation.values(flag.flag);
    const bool off = std::find(invocation.off.begin(), invocation.off.end(), &flag) != invocation.off.end();
    if (values.empty() && !off) continue;
    set.push_back(flag.flag == Flag::kHostfile ? "hosts" : flag.name);
    if (off) body += fmt::format("{}: false\n", flag.name);
    else body += flag.flag == Flag::kEnv ? variables(values, language, out.secrets) : entries(flag, values);
  }
  out.text =
      fmt::format("# {}\n# {}\n{}{}{}", kHead.in(language), kKeys.in(language), body.empty() ? "" : "\n", body, examples(set, language));
  return out;
}

}  // namespace phalanx::cli
