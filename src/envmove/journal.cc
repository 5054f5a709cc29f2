#include "envmove/journal.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envmove/packages.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using base::Json;

constexpr size_t kMostJournalBytes = 512 << 20;

bool is_prefix(const std::string& text) { return text.size() > 1 && text.size() < 4096 && text[0] == '/' && !text.ends_with('/'); }

base::Error not_understood(const std::string& path) {
  return base::fail(ErrorKind::kConfig, fmt::format("{} cannot be understood", base::quote(path)))
      .because("it should say what an interrupted phalanx env rehome had begun")
      .with_hint("remove it and name the former place: phalanx env rehome --old-prefix PATH ...");
}

bool read_change(const Json& json, Change& change) {
  if (!json.is_object()) return false;
  change.path = base::get_string(json, "path").value_or("");
  change.old_sha256 = base::get_string(json, "old").value_or("");
  change.new_sha256 = base::get_string(json, "new").value_or("");
  change.new_size = static_cast<uint64_t>(base::get_int(json, "size").value_or(0));
  auto digest = [](const std::string& text) {
    return text.empty() || (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos);
  };
  return !change.path.empty() && resolve("", change.path) == change.path && digest(change.old_sha256) && digest(change.new_sha256);
}

}  // namespace

base::Result<std::optional<Journal>> read_journal(const Environment& environment) {
  const std::string path = environment.root + "/" + kJournal;
  TRY_ASSIGN(std::optional<os::Fd> file, os::open_regular_if_present(environment.folder->get(), kJournal));
  if (!file) return std::optional<Journal>();
  TRY_ASSIGN(struct stat found, os::stat_of(*file, path));
  if (!os::only_ours(found)) return base::fail(ErrorKind::kConfig, fmt::format("{} could be written by another user", base::quote(path)));
  TRY_ASSIGN(std::string text, os::read_rest(*file, path, kMostJournalBytes));
  base::Result<Json> json = base::parse_json(text, kMostJournalBytes);
  if (!json.ok() || !json->is_object()) return not_understood(path);
  Journal out;
  out.move.new_prefix = base::get_string(*json, "new_prefix").value_or("");
  auto olds = json->find("old_prefixes"), changes = json->find("changes");
  if (!is_prefix(out.move.new_prefix) || olds == json->end() || !olds->is_array() || changes == json->end() || !changes->is_array())
    return not_understood(path);
  for (const Json& old : *olds) {
    if (!old.is_string() || !is_prefix(old.get<std::string>())) return not_understood(path);
    out.move.old_prefixes.push_back(old.get<std::string>());
  }
  for (const Json& one : *changes) {
    Change change;
    if (!read_change(one, change)) return not_understood(path);
    out.changes.push_back(std::move(change));
  }
  return std::optional(std::move(out));
}

base::Status write_journal(const Environment& environment, const Journal& journal) {
  Json json = {{"schema", 1}, {"new_prefix", journal.move.new_prefix}, {"old_prefixes", Json(journal.move.old_prefixes)}};
  json["changes"] = Json::array();
  for (const Change& change : journal.changes) {
    Json one = {{"path", change.path}};
    if (!change.link) one.update({{"old", change.old_sha256}, {"new", change.new_sha256}, {"size", change.new_size}});
    json["changes"].push_back(std::move(one));
  }
  return os::write_file_atomic_at(environment.folder->get(), kJournal, base::to_text(json));
}

base::Result<bool> was_interrupted(const std::string& root) { return os::is_present(root + "/" + kJournal); }

}  // namespace phalanx::envmove
