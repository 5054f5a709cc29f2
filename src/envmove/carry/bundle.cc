// Editable installs whose code lies outside the environment come along. An environment often lies in the project it was made for
// ("project/.venv"): it is left out of its own bundle. What is too large as a whole is taken as git would take it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "envmove/carry/carry.h"
#include "envmove/rewrite.h"
#include "os/files.h"
#include "sync/scan.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using sync::Entry;

constexpr sync::ScanLimits kWhole{500'000'000, 50'000}, kOfGit{2'000'000'000, 100'000};
constexpr const char* kFolder = "src";

// The outermost ones of the sources outside: a package is often named by its project and by the folder "src" in it.
std::vector<std::string> outermost(const Environment& environment, const std::vector<std::string>& own_places, Bundle& out) {
  std::vector<std::string> sources;
  const std::string home = os::environment_value("HOME");
  for (const Editable& one : environment.editables) {
    std::string source = one.source;
    while (source.size() > 1 && source.ends_with('/')) source.pop_back();
    const bool own = std::any_of(own_places.begin(), own_places.end(), [&](const std::string& place) { return is_within(source, place); });
    if (own) continue;
    if (source == "/" || source == home || !os::is_folder(source)) out.left_behind.push_back(one);
    else sources.push_back(std::move(source));
  }
  std::sort(sources.begin(), sources.end());
  std::vector<std::string> outer;
  for (std::string& source : sources)
    if (outer.empty() || !is_within(source, outer.back())) outer.push_back(std::move(source));
  return outer;
}

// Of "tool/src", where the package lies in the project's "src": "tool".
std::string name_of(const std::string& source) {
  const size_t slash = source.rfind('/');
  const std::string name = source.substr(slash + 1);
  return slash > 0 && (name == "src" || name == "lib" || name == "python") ? name_of(source.substr(0, slash)) : name;
}

base::Result<sync::Scan> scan_source(const std::string& source, const std::vector<std::string>& own_places) {
  auto leave = [&](const std::string& path) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (path == ".git" || name == "__pycache__" || name == ".pytest_cache" || name == ".mypy_cache") return true;
    return std::find(own_places.begin(), own_places.end(), source + "/" + path) != own_places.end();
  };
  base::Result<sync::Scan> whole = sync::scan(source, kWhole, "", sync::Take::kEverything, {}, leave);
  if (whole.ok()) return whole;
  base::Result<sync::Scan> code = sync::scan(source, kOfGit, "", sync::Take::kCode, {}, leave);
  if (code.ok()) return code;
  return base::fail(ErrorKind::kConfig, fmt::format("the code of an editable install cannot come along: {}", source))
      .because(code.error().message)
      .with_hint("add what the package does not need to its .gitignore");
}

}  // namespace

ChangeContent moved_texts(Move move) {
  return [move = std::move(move)](const std::string& path, std::string content) {
    if (classify(path, std::string_view(content).substr(0, kClassifiedBytes), nullptr) != FileClass::kText) return content;
    Rewritten now = rewrite(path, content, FileClass::kText, nullptr, move);
    return now.hits > 0 && now.problem.empty() ? std::move(now.data) : std::move(content);
  };
}

base::Status put_aside(const std::string& source, const std::string& place, sync::Scan scan, const ChangeContent& change,
                       AsideWriter& aside, std::vector<Entry>& entries) {
  entries.push_back({.path = place, .kind = sync::Kind::kFolder, .mode = 0755});
  for (Entry& entry : scan.manifest.entries) {
    if (entry.is_file()) {
      TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_below(source + "/.", entry.path));
      if (!file) return base::fail(ErrorKind::kConfig, fmt::format("{}/{} was changed while it was read", source, entry.path));
      TRY_ASSIGN(std::string content, os::read_rest(*file, entry.path, kOfGit.bytes));
      if (change) content = change(entry.path, std::move(content));
      TRY_ASSIGN(entry.content, aside.put(content));
      entry.size = content.size();
    }
    if (!scan.manifest.with_modes && entry.kind != sync::Kind::kLink) entry.mode = entry.kind == sync::Kind::kFile ? 0644 : 0755;
    entry.path = place + "/" + entry.path;
    entries.push_back(std::move(entry));
  }
  return base::ok();
}

base::Result<Bundle> bundle_editables(const Environment& environment, const std::vector<std::string>& own_places,
                                      const CarryRequest& request, AsideWriter& aside) {
  Bundle out;
  std::map<std::string, int> taken;
  for (const std::string& source : outermost(environment, own_places, out)) {
    Bundled bundled{source, std::string(kFolder) + "/" + name_of(source), 0, 0};
    while (taken[bundled.place]++ > 0 || os::exists(environment.root + "/" + bundled.place)) bundled.place += "-2";
    TRY_ASSIGN(sync::Scan scan, scan_source(source, own_places));
    bundled.files = scan.manifest.files();
    bundled.bytes = scan.manifest.bytes();
    TRY(put_aside(source, bundled.place, std::move(scan), moved_texts({own_places, request.to}), aside, out.entries));
    out.moves.push_back({{source}, request.to + "/" + bundled.place});
    out.bundled.push_back(std::move(bundled));
  }
  if (!out.bundled.empty()) out.entries.push_back({.path = kFolder, .kind = sync::Kind::kFolder, .mode = 0755});
  return out;
}

}  // namespace phalanx::envmove
