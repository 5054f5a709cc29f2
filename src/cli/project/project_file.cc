#include "cli/project/project_file.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "base/yaml.h"
#include "cli/codes.h"
#include "cli/flags/env_file.h"
#include "cli/flags/flag_value.h"
#include "hosts/lists/host_list.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::YamlNode;

constexpr size_t kLongestValue = 64u << 10;  // bytes of one word; a variable's value may be longer

// What joins the entries of a list into the text that the option takes; 0: the option takes no list.
char separator_of(Flag flag) {
  switch (flag) {
    case Flag::kHosts:
    case Flag::kSpares: return ',';
    case Flag::kInclude:
    case Flag::kExclude:
    case Flag::kGpus: return '@';
    default: return 0;
  }
}

std::string_view kind_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kText: return "one word";
    case YamlNode::Kind::kList: return "a list";
    case YamlNode::Kind::kMap: return "a mapping";
  }
  return "";
}

class Reader {
 public:
  explicit Reader(std::string_view path) : shown_(base::printable(path, 300)) {}

  Result<ProjectFile> read(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark, as editors on Windows write it
    auto root = base::parse_yaml_tree(text, kLargestProjectFile);
    if (!root.ok()) return placed(std::move(root).error());
    if (root->kind == YamlNode::Kind::kNull) return std::move(file_);
    if (root->kind != YamlNode::Kind::kMap)
      return wrong(*root, fmt::format("the file is {}, not a mapping of options", kind_of(*root)),
                   "write lines such as hosts: gpu01,gpu02");
    for (size_t i = 0; i < root->items.size(); ++i) TRY(take(root->keys[i], root->items[i]));
    return std::move(file_);
  }

 private:
  Error wrong(const YamlNode& at, std::string message, std::string hint = {}) const {
    return base::fail(base::ErrorKind::kConfig, fmt::format("{}:{}:{}: {}", shown_, at.line, at.column, message))
        .with_hint(std::move(hint));
  }
  // An error of a reader that does not know the file.
  Error at(const YamlNode& node, Error error) const {
    Error out = wrong(node, std::move(error.message), std::move(error.hint));
    out.cause = std::move(error.cause);
    return out;
  }
  // "line 3, column 5: …" → "phalanx.yaml:3:5: …"
  Error placed(Error error) const {
    int line = 0, column = 0, read = 0;
    if (std::sscanf(error.message.c_str(), "line %d, column %d: %n", &line, &column, &read) == 2 && read > 0)
      error.message =
          fmt::format("{}:{}:{}: {}", shown_, line, column, base::printable(error.message.substr(static_cast<size_t>(read)), 300));
    else if (std::sscanf(error.message.c_str(), "line %d: %n", &line, &read) == 1 && read > 0)
      error.message = fmt::format("{}:{}: {}", shown_, line, error.message.substr(static_cast<size_t>(read)));
    else error.message = fmt::format("{}: {}", shown_, base::printable(error.message, 300));
    return error;
  }

  Error unknown(const YamlNode& key) const {
    const FlagRow* flag = find_flag(Verb::kRun, key.text);
    if (flag && !is_project_key(*flag))
      return wrong(key, fmt::format("{} cannot be set in a project file", base::quote(key.text, 60)),
                   fmt::format("give it to the single command: --{}", flag->name));
    std::vector<std::string> names;
    for (const FlagRow& row : flag_table())
      if (is_project_key(row)) names.emplace_back(row.name);
    std::optional<std::string> near = flag ? std::optional<std::string>(flag->name) : base::closest(base::to_lower(key.text), names);
    return wrong(key, fmt::format("unknown key {}", base::quote(key.text, 60)),
                 near ? fmt::format("did you mean {}?", *near) : "the keys are the long options of phalanx run: phalanx help run");
  }

  Status take(const YamlNode& key, const YamlNode& value) {
    const FlagRow* flag = find_flag(Verb::kRun, key.text);
    if (!flag || flag->name != key.text || !is_project_key(*flag)) return unknown(key);
    if (flag->flag == Flag::kEnv) return take_env(key, value);
    if (value.kind == YamlNode::Kind::kNull)
      return wrong(key, fmt::format("{} has no value", key.text), "write a value after the colon, or remove the line");
    if (flag->flag == Flag::kAccept) return take_accepted(*flag, value);
    if (value.kind == YamlNode::Kind::kText) return take_word(*flag, value, value.text);
    if (value.kind == YamlNode::Kind::kList && (flag->repeatable || separator_of(flag->flag))) return take_list(*flag, value);
    return wrong(value, fmt::format("{} takes one word{}, not {}", key.text,
                                    flag->repeatable || separator_of(flag->flag) ? " or a list" : "", kind_of(value)));
  }

  Status take_list(const FlagRow& flag, const YamlNode& list) {
    std::string joined;
    for (const YamlNode& item : list.items) {
      if (item.kind == YamlNode::Kind::kMap && flag.flag == Flag::kHosts)
        return wrong(item, "an entry of hosts is a mapping, not one word", "write HOST:SLOTS without a space after the colon");
      if (item.kind != YamlNode::Kind::kText)
        return wrong(item, fmt::format("an entry of {} is {}, not one word", flag.name, kind_of(item)));
      if (flag.repeatable) TRY(take_word(flag, item, item.text));
      else joined += (joined.empty() ? "" : std::string(1, separator_of(flag.flag))) + item.text;
    }
    if (flag.repeatable) return base::ok();
    if (joined.empty()) return wrong(list, fmt::format("{} is an empty list", flag.name));
    return take_word(flag, list, joined);
  }

  Status take_word(const FlagRow& flag, const YamlNode& place, const std::string& word) {
    if (word.size() > kLongestValue && separator_of(flag.flag) == 0)
      return wrong(place, base::counted("the value of {} is longer than {} bytes", flag.name, kLongestValue));
    if (flag.kind == ValueKind::kNone) {
      if (word != "true" && word != "false")
        return wrong(place, fmt::format("{}: {} is neither true nor false", flag.name, base::quote(word, 60)));
      return add(flag, place, word);
    }
    if (Status good = check_value(flag, flag.name, word); !good.ok()) return at(place, std::move(good).error());
    if (flag.flag == Flag::kHosts) return take_hosts(flag, place, word);
    if (flag.flag == Flag::kSpares) {
      if (auto hosts = hosts::parse_host_argument(word, base::quote(flag.name)); !hosts.ok()) return at(place, std::move(hosts).error());
    }
    return add(flag, place, word);
  }

  // A list of hosts, or the path of a hostfile: no name of a host has a slash in it.
  Status take_hosts(const FlagRow& flag, const YamlNode& place, const std::string& word) {
    if (word.find('/') != std::string::npos) return add(row(Flag::kHostfile), place, word);
    if (word.ends_with(".txt") || word == "hostfile")
      return wrong(place, fmt::format("hosts: {} looks like a file", base::quote(word, 60)),
                   fmt::format("write hosts: ./{}", base::printable(word)));
    if (auto hosts = hosts::parse_host_argument(word, base::quote(flag.name)); !hosts.ok()) return at(place, std::move(hosts).error());
    return add(flag, place, word);
  }

  // "- FS-SHM-SMALL", "- FS-SHM-SMALL@gpu01", "- FS-SHM-SMALL: [gpu01, gpu02]"
  Status take_accepted(const FlagRow& flag, const YamlNode& value) {
    if (value.kind == YamlNode::Kind::kText) return take_acceptance(flag, value, value.text);
    if (value.kind != YamlNode::Kind::kList) return wrong(value, fmt::format("accept takes a list of codes, not {}", kind_of(value)));
    for (const YamlNode& item : value.items) {
      if (item.kind == YamlNode::Kind::kText) {
        TRY(take_acceptance(flag, item, item.text));
        continue;
      }
      if (item.kind != YamlNode::Kind::kMap || item.items.size() != 1)
        return wrong(item, fmt::format("an entry of accept is {}, not a code", kind_of(item)), "write - CODE, or - CODE: [HOST, HOST]");
      std::string hosts;
      const YamlNode& named = item.items[0];
      const std::vector<YamlNode> list = named.kind == YamlNode::Kind::kText ? std::vector<YamlNode>{named} : named.items;
      for (const YamlNode& host : list) {
        if (host.kind != YamlNode::Kind::kText || named.kind == YamlNode::Kind::kMap)
          return wrong(host, fmt::format("a host of {} is not one word", base::printable(item.keys[0].text, 60)));
        hosts += (hosts.empty() ? "" : ",") + host.text;
      }
      if (hosts.empty()) return wrong(item, "the list of hosts is empty", "write - CODE to accept it on every host");
      TRY(take_acceptance(flag, item.keys[0], item.keys[0].text + "@" + hosts));
    }
    return base::ok();
  }

  Status take_acceptance(const FlagRow& flag, const YamlNode& place, const std::string& text) {
    if (auto some = acceptances(text); !some.ok()) return at(place, std::move(some).error());
    return add(flag, place, text);
  }

  Status take_env(const YamlNode& key, const YamlNode& value) {
    if (value.kind != YamlNode::Kind::kMap)
      return wrong(value.kind == YamlNode::Kind::kNull ? key : value, fmt::format("env is {}, not a mapping", kind_of(value)),
                   "write NAME: value, indented, one per line");
    for (size_t i = 0; i < value.items.size(); ++i) {
      const YamlNode& name = value.keys[i];
      const YamlNode& word = value.items[i];
      if (!is_variable_name(name.text))
        return wrong(name, fmt::format("{} is not the name of a variable", base::quote(name.text, 60)),
                     "a name consists of letters, digits and '_', and does not start with a digit");
      if (word.kind == YamlNode::Kind::kList || word.kind == YamlNode::Kind::kMap)
        return wrong(word, fmt::format("the value of {} is {}, not one word", name.text, kind_of(word)));
      if (word.text.size() > kLongestEnvValue)
        return wrong(word, base::counted("the value of {} is longer than {} bytes", name.text, kLongestEnvValue));
      if (file_.env.size() == kMostEnvVariables) return wrong(name, base::counted("more than {} variables", kMostEnvVariables));
      ProjectVariable variable{name.text, word.text, name.line, name.column};
      if (word.kind == YamlNode::Kind::kNull) variable.value.reset();
      file_.env.push_back(std::move(variable));
    }
    return base::ok();
  }

  Status add(const FlagRow& flag, const YamlNode& place, const std::string& value) {
    for (const ProjectValue& before : file_.values)
      if (before.flag == &flag && !flag.repeatable)
        return wrong(place, fmt::format("{} is set already, on line {}", flag.name, before.line), "keep one of them");
    file_.values.push_back({&flag, value, place.line, place.column});
    return base::ok();
  }

  std::string shown_;
  ProjectFile file_;
};

}  // namespace

Result<ProjectFile> parse_project_file(std::string_view text, std::string_view path) {
  TRY_ASSIGN(ProjectFile file, Reader(path).read(text));
  file.path = path;
  return file;
}

}  // namespace phalanx::cli
