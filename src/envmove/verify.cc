#include "envmove/verify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "envmove/below.h"
#include "envmove/each_file.h"
#include "envmove/glibc.h"
#include "envmove/packages.h"
#include "envmove/prefix.h"
#include "envmove/votes.h"
#include "os/capture.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

constexpr size_t kHead = 4 << 10;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kMostRecordBytes = 64 << 20;

// What a package's record says a file should be.
struct Expected {
  std::string hex;     // conda's
  std::string record;  // "sha256=…" of RECORD
};

class Verify {
 public:
  explicit Verify(const Environment& environment) : environment_(environment) {}

  base::Status places() {
    TRY_ASSIGN(bool interrupted, was_interrupted(environment_.root));
    if (interrupted) add("ENV-HALF-MOVED", true, environment_.root + "/" + kJournal, "");
    std::vector<Candidate> candidates = vote(environment_);
    const std::vector<std::string> sure = old_prefixes(environment_, candidates);
    for (const std::string& old : sure) add("ENV-MOVED", true, environment_.root, old);
    // Not repaired unasked, but what runs there uses another environment.
    for (const Candidate& other : elsewhere(environment_, candidates))
      if (other.votes.contains(Source::kScript) && !is_gone(other.prefix) &&
          std::find(sure.begin(), sure.end(), other.prefix) == sure.end())
        add("ENV-MOVED", false, environment_.root, other.prefix);
    return base::ok();
  }

  void links() {
    const bool base_gone = environment_.kind == Kind::kVenv && !environment_.base.empty() && is_gone(environment_.base);
    if (base_gone) add("ENV-BASE-GONE", true, environment_.base, "");
    for (const File& file : environment_.files) {
      if (!file.is_link() || !is_gone(path_of(file))) continue;
      const bool interpreter = file.path.starts_with("bin/python");
      const bool module = file.path.find("-packages/") != std::string::npos;  // uv and conda may have linked them to a cache
      if (!(interpreter && base_gone)) add("ENV-LINK-GONE", interpreter || module, path_of(file), file.target);
    }
  }

  void scripts() {
    for (const File& file : environment_.files) {
      if (file.is_link() || !file.path.starts_with("bin/")) continue;
      std::string head(kHead, '\0');
      auto opened = open_below(environment_, file.path);
      auto size = opened.ok() ? os::read_at(*opened, file.path, 0, head.data(), head.size()) : opened.error();
      if (!size.ok()) continue;
      head.resize(*size);
      std::optional<Shebang> shebang = read_shebang(head);
      if (shebang && is_ours(shebang->interpreter) && is_gone(shebang->interpreter))
        add("ENV-SHEBANG", true, path_of(file), shebang->interpreter);
    }
  }

  // One that a host's C library is too old for cannot be loaded there.
  base::Status libraries() {
    const Glibc here = glibc_here();
    std::vector<const File*> candidates;
    for (const File& file : environment_.files)
      if (!file.is_link() && (file.path.starts_with("bin/") || file.path.find(".so", file.path.rfind('/') + 1) != std::string::npos))
        candidates.push_back(&file);
    if (here == 0) return base::ok();
    return each_of(candidates.size(), [&](size_t i) -> base::Status {
      const base::Result<os::Fd> opened = open_below(environment_, candidates[i]->path);
      const Glibc needed = opened.ok() ? glibc_needed(*opened) : 0;
      if (needed > here) add("ENV-GLIBC", true, path_of(*candidates[i]), glibc_text(needed) + " > " + glibc_text(here));
      return base::ok();
    });
  }

  void editables() {
    for (const Editable& one : environment_.editables)
      if (is_gone(one.source)) add("ENV-EDITABLE-GONE", !one.file.ends_with(".pth"), environment_.root + "/" + one.file, one.source);
  }

  base::Status files(const Progress& progress) {
    std::map<std::string, Expected> expected;
    for (const auto& [path, managed] : environment_.managed)
      if (!managed.sha256.empty()) expected[path].hex = managed.sha256;
    for (const File& file : environment_.files)
      if (file.path.ends_with(".dist-info/RECORD") && !file.is_link()) TRY(add_record(file.path, expected));
    std::vector<std::pair<const std::string, Expected>> all(expected.begin(), expected.end());
    std::atomic<size_t> done = 0;
    return each_of(all.size(), [&](size_t i) -> base::Status {
      TRY(compare(all[i].first, all[i].second));
      if (progress) progress(++done, all.size());
      return base::ok();
    });
  }

  // Isolated: neither PYTHONPATH nor the user's own packages may help it. Not where another user could have put what it runs: who looks at
  // an environment has not decided to trust it.
  void python() {
    const std::string program = environment_.root + "/bin/python";
    if (!environment_.find("bin/python") || is_gone(program)) return;
    char resolved[PATH_MAX];
    if (!realpath(program.c_str(), resolved)) return add("ENV-PYTHON-FAILS", true, program, std::strerror(errno));
    const std::string foreign = environment_.foreign.empty() ? first_foreign(resolved) : environment_.foreign;
    if (!foreign.empty()) return add("ENV-PYTHON-FOREIGN", false, foreign, "");
    os::CaptureSpec spec;
    spec.program = program;
    spec.arguments = {program, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)"};
    spec.environment = {"PATH=/usr/bin:/bin", "HOME=" + os::environment_value("HOME", "/")};
    spec.deadline = std::chrono::seconds(kPythonSeconds);
    os::Captured said = os::capture(spec);
    if (!said.fault.empty()) return add("ENV-PYTHON-FAILS", true, program, said.fault);
    const std::string line(base::trim(said.output));
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string version = line.substr(0, blank), prefix = line.substr(std::min(blank + 1, line.size()));
    const std::string made_for = environment_.kind == Kind::kVenv ? minor_version(environment_.python) : "";
    if (!made_for.empty() && version != made_for) add("ENV-PYTHON-FAILS", true, program, fmt::format("Python {} != {}", version, made_for));
    // An interpreter that lies elsewhere knows this environment only by pyvenv.cfg.
    const bool own = environment_.kind == Kind::kVenv || std::string_view(resolved).starts_with(environment_.root + "/");
    if (own && !is_the_same_folder(prefix, environment_.root)) add("ENV-PYTHON-FAILS", true, program, "sys.prefix: " + prefix);
  }

  std::vector<Flaw> result() {
    auto key = [](const Flaw& flaw) { return std::tuple(!flaw.fatal, flaw.code, std::string_view(flaw.path)); };
    std::sort(flaws_.begin(), flaws_.end(), [&](const Flaw& a, const Flaw& b) { return key(a) < key(b); });
    return std::move(flaws_);
  }

 private:
  std::string path_of(const File& file) const { return environment_.root + "/" + file.path; }

  void add(std::string_view code, bool fatal, std::string path, std::string detail) {
    std::lock_guard lock(mutex_);
    flaws_.push_back({code, fatal, std::move(path), std::move(detail)});
  }

  // A Python, or a program that the environment has itself. Another interpreter is a matter of the machine.
  bool is_ours(const std::string& interpreter) const {
    const std::string name = interpreter.substr(interpreter.rfind('/') + 1);
    return name.starts_with("python") || name.starts_with("pypy") || environment_.find("bin/" + name);
  }

  base::Status add_record(const std::string& path, std::map<std::string, Expected>& expected) {
    TRY_ASSIGN(const Content record, read_below(environment_, path, kMostRecordBytes));
    const std::string folder = path.substr(0, path.rfind('/')), site = folder.substr(0, folder.rfind('/'));
    for (std::string_view line : base::split_lines(record.data)) {
      std::optional<RecordLine> entry = parse_record_line(line);
      const std::string file = entry && entry->hash.starts_with("sha256=") ? resolve(site, entry->path) : "";
      if (!file.empty() && !file.ends_with(".pyc")) expected[file].record = entry->hash;
    }
    return base::ok();
  }

  base::Status compare(const std::string& path, const Expected& expected) {
    const std::string whole = environment_.root + "/" + path;
    const File* file = environment_.find(path);
    if (!file && !path.ends_with(".pyc") && is_gone(whole)) add("ENV-FILE-GONE", false, whole, "");
    if (!file || file->is_link()) return base::ok();
    base::Sha256 hash;
    TRY_ASSIGN(os::Fd opened, open_below(environment_, path));
    std::string piece(kPiece, '\0');
    for (off_t at = 0;;) {
      TRY_ASSIGN(size_t size, os::read_at(opened, whole, at, piece.data(), piece.size()));
      hash.update(std::string_view(piece).substr(0, size));
      at += static_cast<off_t>(size);
      if (size < piece.size()) break;
    }
    // One of the two is enough: pip may have replaced what conda installed.
    const std::string hex = hash.hex();
    const bool known = (!expected.hex.empty() && hex == expected.hex) || (!expected.record.empty() && record_hash(hex) == expected.record);
    if (!known) add("ENV-FILE-CHANGED", false, whole, "");
    return base::ok();
  }

  const Environment& environment_;
  std::mutex mutex_;
  std::vector<Flaw> flaws_;
};

}  // namespace

base::Result<std::vector<Flaw>> verify(const Environment& environment, const VerifyOptions& options, const Progress& progress) {
  Verify verify(environment);
  TRY(verify.places());
  verify.links();
  verify.scripts();
  verify.editables();
  TRY(verify.libraries());
  if (options.hashes) TRY(verify.files(progress));
  if (options.start_python) verify.python();
  return verify.result();
}

}  // namespace phalanx::envmove
