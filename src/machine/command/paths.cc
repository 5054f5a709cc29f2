#include "machine/command/paths.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"
#include "machine/command/launch_line.h"

namespace phalanx::machine {
namespace {

bool has(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}
bool ends(std::string_view text, std::initializer_list<std::string_view> tails) {
  return std::any_of(tails.begin(), tails.end(), [&](std::string_view tail) { return text.ends_with(tail); });
}

std::string last_part(std::string_view key) { return base::to_lower(key.substr(key.find_last_of('.') + 1)); }

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

}  // namespace

std::string path_role(std::string_view whole) {
  std::string key = last_part(whole);
  struct Exact {
    std::string_view role, keys;
  };
  static constexpr Exact kExact[] = {
      {"output",
       "output_dir logging_dir save default_root_dir dirpath exp_dir work_dir workdir run_dir nvme_path offload_folder out output"},
      {"input",
       "load dataset_dir media_dir resume_from_checkpoint resume ckpt_path reward_model ref_model tokenizer_name corpus data dataset "
       "model_path"},
      {"any", "tokenized_path checkpoint_dir ckpt_dir"},
      {"cache", "cache_dir"},
      {"", "validation config_path config_file config_dir class_path module_path import_path python_path"},
  };
  for (const Exact& e : kExact)
    if (base::is_listed(key, e.keys)) return std::string(e.role);
  if (!ends(key, {"_dir", "_path", "_file", "_folder", "_root", "_files", "_paths", "_directory", "datadir", "dataroot"})) return "";
  if (has(key, {"config", "hostfile", "deepspeed", "drop_path", "local_dir", "class"})) return "";
  if (has(key, {"cache", "tmp", "temp"})) return "cache";
  if (has(key, {"load", "pretrain", "resume", "init"})) return "input";
  if (has(key, {"out", "save", "log", "result", "export", "dump", "tensorboard", "profil"})) return "output";
  if (has(key, {"ckpt", "checkpoint"})) return "any";
  if (has(key,
          {"data", "train", "val", "test", "eval", "model", "token", "vocab", "image", "audio", "video", "corpus", "adapter", "weight"}))
    return "input";
  return "any";
}

bool takes_hub_id(std::string_view whole) {
  std::string key = last_part(whole);
  return ends(key, {"_or_path", "model_path", "tokenizer_name", "tokenizer_path", "ref_model", "reward_model", "model"}) ||
         key == "resume_from_checkpoint" || key == "resume" || key == "load" || key == "data_path" || key == "dataset_path" ||
         key == "data" || key == "dataset";
}

bool looks_like_path(const std::string& value) {
  if (value.empty() || value.size() > 4096 || value.find("://") != std::string::npos) return false;
  if (value.find_first_of("$`*?\n\t<>|\"'{}") != std::string::npos || value.front() == '-') return false;
  if (value.find(':') < value.find('/')) return false;  // "s3:…", "host:/…", LLaMA-Factory's "REMOTE:org/name"
  if (value == "/" || value == ".") return true;
  std::string lower = base::to_lower(value);
  for (std::string_view word : {"none", "null", "true", "false", "auto", "latest", "last", "best", "yes", "no", "online", "***"})
    if (lower == word) return false;
  return value.find_first_not_of("0123456789.,-eE") != std::string::npos;
}

std::string absolute_path(const std::string& value, const std::string& directory, const std::string& home) {
  std::string joined = value;
  if (value == "~" || value.starts_with("~/")) joined = (home.empty() ? "/" : home) + value.substr(1);
  else if (!value.starts_with('/')) joined = directory + "/" + value;
  std::vector<std::string_view> parts;
  for (std::string_view part : base::split(joined, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.push_back(part);
    else if (!parts.empty()) parts.pop_back();
  }
  return "/" + base::join(parts, "/");
}

namespace {

// Where the value after a secret's name begins and ends; begin == end: there is none.
std::pair<size_t, size_t> secret_value(const std::string& text, size_t at, bool only_quoted) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;  // "key": …
  if (at < text.size() && text[at] == ']') ++at;                        // os.environ["KEY"] = …
  while (at < text.size() && text[at] == ' ') ++at;
  if (at >= text.size() || (text[at] != '=' && text[at] != ':')) return {at, at};
  ++at;
  while (at < text.size() && text[at] == ' ') ++at;
  if (at >= text.size()) return {at, at};
  if (text[at] == '"' || text[at] == '\'') {
    size_t end = text.find_first_of(std::string(1, text[at]) + "\n", at + 1);
    return {at + 1, std::min(end, text.size())};
  }
  if (only_quoted || text[at] == '$' || text[at] == '\n') return {at, at};
  return {at, std::min(text.find_first_of(" \t\r\n,;}#", at), text.size())};
}

}  // namespace

std::string without_secrets(const std::string& text, bool only_quoted) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    if (!name_char(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && name_char(text[end])) ++end;
    std::string_view word(text.data() + at, end - at);
    if ((word.starts_with("hf_") || word.starts_with("sk-") || word.starts_with("ghp_")) && word.size() >= 23) {
      out += "***";
      at = end;
      continue;
    }
    out += word;
    at = end;
    if (word.size() > 64 || !secret_name(word)) continue;
    auto [from, to] = secret_value(text, end, only_quoted);
    if (from >= to) continue;
    out.append(text, at, from - at);
    out += "***";
    at = to;
  }
  return out;
}

}  // namespace phalanx::machine
