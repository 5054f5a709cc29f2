// The Python that a venv was made from comes along where it can lie anywhere. CPython finds its library by where the program lies
// (Modules/getpath.py: lib/pythonX.Y/os.py in a folder above it); what cannot move is one whose program finds libpython by an absolute
// path, and one whose files are spread over the system's folders.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "base/try.h"
#include "envmove/carry.h"
#include "envmove/rewrite.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

constexpr sync::ScanLimits kMostOfBase{1'000'000'000, 60'000};
constexpr size_t kMostProgramBytes = 256 << 20;
constexpr const char* kPlace = ".python";

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

bool is_within(const std::string& path, const std::string& folder) { return path == folder || path.starts_with(folder + "/"); }

// "/opt/py" of the folder "/opt/py/bin"; empty: it is another kind of folder.
std::string prefix_of(const std::string& base) {
  std::string folder = base;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder.starts_with('/') && folder.ends_with("/bin") ? folder.substr(0, folder.size() - 4) : "";
}

// "python3.11" of "3.11.2".
std::string name_of(const std::string& version) {
  const std::vector<std::string_view> parts = base::split(version, '.');
  return parts.size() < 2 ? "" : "python" + std::string(parts[0]) + "." + std::string(parts[1]);
}

BaseStays why_it_stays(const std::string& prefix, const std::string& real, const std::string& python) {
  for (const char* system : {"", "/usr", "/usr/local"})
    if (prefix == system || real == system) return BaseStays::kSystem;
  if (python.empty() || !os::exists(prefix + "/lib/" + python + "/os.py")) return BaseStays::kSystem;
  if (os::exists(prefix + "/conda-meta")) return BaseStays::kConda;
  const base::Result<std::optional<std::string>> program = os::read_if_present(prefix + "/bin/" + python, kMostProgramBytes);
  if (!program.ok() || !*program) return BaseStays::kSystem;
  const bool shared = (*program)->find("libpython3") != std::string::npos;
  return shared && (*program)->find("$ORIGIN") == std::string::npos ? BaseStays::kLinked : BaseStays::kNo;
}

}  // namespace

base::Status bundle_base(const Environment& environment, const std::vector<std::string>& own_places, const CarryRequest& request,
                         AsideWriter& aside, Bundle& out) {
  if (environment.kind != Kind::kVenv || environment.base.empty()) return base::ok();
  const std::string prefix = prefix_of(environment.base), real = real_path(prefix), python = name_of(environment.python);
  for (const std::string& place : own_places)
    if (is_within(prefix, place) || is_within(real, place)) return base::ok();
  out.base_stays = os::exists(environment.root + "/" + kPlace) ? BaseStays::kSystem : why_it_stays(prefix, real, python);
  if (out.base_stays != BaseStays::kNo) return base::ok();

  const std::string library = "lib/" + python + "/";
  auto leave = [&](const std::string& path) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (name == "__pycache__") return true;
    if (!environment.uses_packages_of_base && (path == library + "site-packages" || path == library + "dist-packages")) return true;
    return std::find(own_places.begin(), own_places.end(), real + "/" + path) != own_places.end();
  };
  base::Result<sync::Scan> scan = sync::scan(real, kMostOfBase, "", sync::Take::kEverything, {}, leave);
  if (!scan.ok()) {
    out.base_stays = BaseStays::kLarge;
    return base::ok();
  }
  const Move move{prefix == real ? std::vector{prefix} : std::vector{prefix, real}, request.to + "/" + kPlace};
  Bundled bundled{prefix, kPlace, scan->manifest.files(), scan->manifest.bytes()};
  for (sync::Entry& entry : scan->manifest.entries)
    if (entry.kind == sync::Kind::kLink) entry.content = moved_path(entry.content, move);
  auto change = [&](const std::string& path, std::string content) {
    if (classify(path, std::string_view(content).substr(0, kClassifiedBytes), nullptr) != FileClass::kText) return content;
    Rewritten now = rewrite(path, content, FileClass::kText, nullptr, move);
    return now.hits > 0 && now.problem.empty() ? std::move(now.data) : std::move(content);
  };
  TRY(put_aside(real, kPlace, std::move(*scan), change, aside, out.entries));
  for (const std::string& old : move.old_prefixes) out.moves.push_back({{old}, move.new_prefix});
  out.base = std::move(bundled);
  return base::ok();
}

}  // namespace phalanx::envmove
