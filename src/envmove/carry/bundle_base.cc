// The Python that a venv was made from comes along where it can lie anywhere. CPython finds its library by where the program lies
// (Modules/getpath.py: lib/pythonX.Y/os.py in a folder above it); what cannot move is one whose program finds libpython by an absolute
// path, and one whose files are spread over the system's folders.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "base/try.h"
#include "envmove/carry/carry.h"
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

BaseStays why_it_stays(const std::string& prefix, const std::string& python) {
  for (const char* system : {"", "/usr", "/usr/local"})
    if (prefix == system) return BaseStays::kSystem;
  if (!os::exists(prefix + "/lib/" + python + "/os.py")) return BaseStays::kUnknown;
  if (os::exists(prefix + "/conda-meta")) return BaseStays::kConda;
  const base::Result<std::optional<std::string>> program = os::read_if_present(prefix + "/bin/" + python, kMostProgramBytes);
  if (!program.ok() || !*program) return BaseStays::kUnknown;
  const bool shared = (*program)->find("libpython3") != std::string::npos;
  return shared && (*program)->find("$ORIGIN") == std::string::npos ? BaseStays::kLinked : BaseStays::kNo;
}

// What of the base is Python's: it may lie in a folder with much else, as ~/.local.
class Parts {
 public:
  Parts(const std::string& python, bool with_packages)
      : library_("lib/" + python), headers_("include/" + python), packages_(with_packages) {}
  bool has(const std::string& path) const {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (path == "bin" || path == "lib" || path == "include") return true;
    if (path.starts_with("bin/")) return name.starts_with("python") && path.find('/', 4) == std::string::npos;
    if (is_within(path, library_))
      return name != "__pycache__" && (packages_ || (path != library_ + "/site-packages" && path != library_ + "/dist-packages"));
    if (is_within(path, headers_)) return true;
    for (const char* library : {"lib/libpython3", "lib/libtcl", "lib/libtk", "lib/tcl", "lib/tk", "lib/itcl", "lib/thread"})
      if (path.starts_with(library)) return true;
    return false;
  }

 private:
  std::string library_, headers_;
  bool packages_;
};

}  // namespace

base::Status bundle_base(const Environment& environment, const std::vector<std::string>& own_places, const CarryRequest& request,
                         AsideWriter& aside, Bundle& out) {
  if (environment.kind != Kind::kVenv || environment.base.empty()) return base::ok();
  const std::string version = minor_version(environment.python), python = version.empty() ? "" : "python" + version;
  const std::string program = real_path(environment.base + "/" + python), folder = program.substr(0, program.rfind('/'));
  for (const std::string& place : own_places)
    if (is_within(environment.base, place) || is_within(program, place)) return base::ok();
  const std::string prefix = folder.substr(0, folder.rfind('/'));
  const bool in_bin = !python.empty() && folder == prefix + "/bin" && !os::exists(environment.root + "/" + kPlace);
  out.base_stays = in_bin ? why_it_stays(prefix, python) : BaseStays::kUnknown;
  if (out.base_stays != BaseStays::kNo) return base::ok();

  const Parts parts(python, environment.uses_packages_of_base);
  auto leave = [&](const std::string& path) {
    return !parts.has(path) || std::find(own_places.begin(), own_places.end(), prefix + "/" + path) != own_places.end();
  };
  base::Result<sync::Scan> scan = sync::scan(prefix, kMostOfBase, "", sync::Take::kEverything, {}, leave);
  if (!scan.ok()) {
    out.base_stays = scan.error().kind == base::ErrorKind::kUsage ? BaseStays::kLarge : BaseStays::kUnread;
    return base::ok();
  }
  const Move move{{prefix}, request.to + "/" + kPlace};
  Bundled bundled{prefix, kPlace, scan->manifest.files(), scan->manifest.bytes()};
  for (sync::Entry& entry : scan->manifest.entries)
    if (entry.kind == sync::Kind::kLink) entry.content = moved_path(entry.content, move);
  TRY(put_aside(prefix, kPlace, std::move(*scan), moved_texts(move), aside, out.entries));
  // The venv names the folder of the program as it was called, by way of a link perhaps.
  out.base_moves.push_back(move);
  if (environment.base != folder) out.base_moves.push_back({{environment.base}, move.new_prefix + "/bin"});
  out.base = std::move(bundled);
  return base::ok();
}

}  // namespace phalanx::envmove
