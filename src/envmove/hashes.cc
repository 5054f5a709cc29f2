#include "envmove/hashes.h"

#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "envmove/below.h"
#include "envmove/each_file.h"
#include "envmove/packages.h"
#include "envmove/replace_file.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kMostRecordBytes = 64 << 20;

using ByPath = std::unordered_map<std::string, const Change*>;

// "…/torch-2.1.dist-info/RECORD" lies in the folder its paths are relative to, one level up.
std::string base_of_record(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  const size_t slash = folder.rfind('/');
  return slash == std::string::npos ? "" : folder.substr(0, slash);
}

base::Status correct_record(const Environment& environment, const std::string& path, const ByPath& changed) {
  TRY_ASSIGN(const Content before, read_below(environment, path, kMostRecordBytes));
  const std::string& text = before.data;
  const std::string base = base_of_record(path);
  std::string out;
  bool differs = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view whole = std::string_view(text).substr(at, std::min(end + 1, text.size()) - at), line = whole;
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view ending = whole.substr(line.size());
    at += whole.size();
    std::optional<RecordLine> entry = parse_record_line(line);
    auto change = entry ? changed.find(resolve(base, entry->path)) : changed.end();
    if (change == changed.end() || change->second->link || entry->hash != record_hash(change->second->old_sha256)) {
      out += whole;
      continue;
    }
    entry->hash = record_hash(change->second->new_sha256);
    if (!entry->size.empty()) entry->size = std::to_string(change->second->new_size);
    out += record_line(*entry);
    out += ending;
    differs = true;
  }
  return differs ? replace_file(before.spot, out, before.stat) : base::ok();
}

// Byte for byte the same record, but for the hashes: `"sha256_in_prefix": "…"`, however it is spaced.
base::Status correct_conda(const Environment& environment, const std::string& path, const std::map<std::string, std::string>& hashes) {
  TRY_ASSIGN(const Content before, read_below(environment, path, kMostRecordBytes));
  std::string text = before.data;
  constexpr std::string_view kKey = "\"sha256_in_prefix\"";
  constexpr size_t kDigits = 64;
  bool differs = false;
  for (size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at + 1)) {
    size_t value = text.find_first_not_of(" \t\r\n:", at + kKey.size());
    if (value == std::string::npos || text[value] != '"' || value + kDigits + 1 >= text.size() || text[value + kDigits + 1] != '"')
      continue;
    auto now = hashes.find(text.substr(value + 1, kDigits));
    if (now == hashes.end()) continue;
    text.replace(value + 1, kDigits, now->second);
    differs = true;
  }
  return differs ? replace_file(before.spot, text, before.stat) : base::ok();
}

}  // namespace

base::Status correct_hashes(const Environment& environment, const std::vector<Change>& changes) {
  ByPath changed;
  std::map<std::string, std::map<std::string, std::string>> of_conda;  // record -> old hash -> new hash
  for (const Change& change : changes) {
    changed.emplace(change.path, &change);
    auto managed = environment.managed.find(change.path);
    if (managed != environment.managed.end() && !change.link && managed->second.sha256 == change.old_sha256)
      of_conda[managed->second.record].emplace(change.old_sha256, change.new_sha256);
  }
  std::vector<const File*> records;
  for (const File& file : environment.files)
    if (file.path.ends_with(".dist-info/RECORD") && !file.is_link()) records.push_back(&file);
  TRY(each_of(records.size(), [&](size_t i) { return correct_record(environment, records[i]->path, changed); }));
  for (const auto& [path, hashes] : of_conda) TRY(correct_conda(environment, path, hashes));
  return base::ok();
}

}  // namespace phalanx::envmove
