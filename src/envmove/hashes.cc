#include "envmove/hashes.h"

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

std::optional<std::string> corrected_pip(const std::string& path, std::string_view text, const ByPath& changed) {
  const std::string base = base_of_record(path);
  std::string out;
  bool differs = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view whole = text.substr(at, std::min(end + 1, text.size()) - at), line = whole;
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
  return differs ? std::optional(std::move(out)) : std::nullopt;
}

// Byte for byte the same record, but for the hashes: `"sha256_in_prefix": "…"`, however it is spaced.
std::optional<std::string> corrected_conda(std::string text, const std::map<std::string, std::string>& hashes) {
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
  return differs ? std::optional(std::move(text)) : std::nullopt;
}

bool is_pip_record(const std::string& path) { return path.ends_with(".dist-info/RECORD"); }

}  // namespace

HashCorrections::HashCorrections(const Environment& environment, const std::vector<Change>& changes) : environment_(environment) {
  for (const Change& change : changes) {
    changed_.emplace(change.path, &change);
    auto managed = environment.managed.find(change.path);
    if (managed == environment.managed.end() || change.link || managed->second.sha256.empty()) continue;
    // As it was installed, or, of conda-pack, as it was packed: there the record says what it was where it was installed.
    if (change.old_sha256 == managed->second.sha256 || change.old_sha256 == managed->second.packed)
      of_conda_[managed->second.record].emplace(managed->second.sha256, change.new_sha256);
  }
}

std::vector<std::string> HashCorrections::records() const {
  std::vector<std::string> records;
  for (const File& file : environment_.files)
    if (!file.is_link() && (is_pip_record(file.path) || of_conda_.contains(file.path))) records.push_back(file.path);
  return records;
}

std::optional<std::string> HashCorrections::corrected(const std::string& record, const std::string& text) const {
  if (is_pip_record(record)) return corrected_pip(record, text, changed_);
  const auto hashes = of_conda_.find(record);
  return hashes == of_conda_.end() ? std::nullopt : corrected_conda(text, hashes->second);
}

base::Status correct_hashes(const Environment& environment, const std::vector<Change>& changes) {
  const HashCorrections corrections(environment, changes);
  const std::vector<std::string> records = corrections.records();
  return each_of(records.size(), [&](size_t i) -> base::Status {
    TRY_ASSIGN(const Content before, read_below(environment, records[i], kMostRecordBytes));
    const std::optional<std::string> corrected = corrections.corrected(records[i], before.data);
    return corrected ? replace_file(before.spot, *corrected, before.stat) : base::ok();
  });
}

}  // namespace phalanx::envmove
