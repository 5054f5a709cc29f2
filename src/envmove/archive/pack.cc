#include "envmove/archive/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envmove/archive/extract.h"
#include "os/files.h"
#include "sync/scan.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using sync::Entry;

constexpr size_t kBlock = 1 << 20;
constexpr size_t kMostProgramBytes = 64 << 20;
constexpr size_t kMostHeadBytes = 16 << 10;
constexpr std::string_view kMark = "# phalanx-env archive at ";
constexpr size_t kNumberWidth = 12;

// @PROGRAM@ and @ARCHIVE@ are where these begin in the file, counted from 1 (as tail does) and from 0; @SIZE@ is that of the program. It
// runs from a folder of its own that can hold programs, looks at no other file, and leaves nothing.
constexpr std::string_view kScript = R"sh(#!/bin/sh
# A Python environment that unpacks itself: sh FILE DIRECTORY
# phalanx-env archive at @ARCHIVE@
set -eu
if [ $# -ne 1 ] || [ "$1" = --help ]; then
  echo "usage: sh $0 DIRECTORY" >&2
  echo "Unpacks the Python environment in this file to DIRECTORY, which must not exist, and makes it fit its place." >&2
  exit 2
fi
if [ "$(uname -sm)" != "@MACHINE@" ]; then echo "error: this environment is for @MACHINE@, not $(uname -sm)" >&2; exit 3; fi
for t in "${TMPDIR:-/tmp}" /var/tmp "${HOME:-/tmp}" .; do
  d=$(umask 077; mktemp -d "$t/phalanx-env.XXXXXX" 2>/dev/null) || continue
  trap 'rm -rf "$d"' EXIT HUP INT TERM
  tail -c +@PROGRAM@ "$0" | head -c @SIZE@ >"$d/phalanx-env"
  chmod 700 "$d/phalanx-env"
  if "$d/phalanx-env" --version >/dev/null 2>&1; then "$d/phalanx-env" -- unpack "$0" "$1" && exit 0 || exit $?; fi
  rm -rf "$d"
done
echo "error: no directory can hold a program: set TMPDIR to one that is writable and not mounted noexec" >&2
exit 3
)sh";

std::string machine() {
  return
#if defined(__x86_64__)
      "Linux x86_64";
#elif defined(__aarch64__)
      "Linux aarch64";
#else
      "Linux";
#endif
}

std::string number(uint64_t value) { return fmt::format("{:0{}}", value, kNumberWidth); }

// Numbers have one width, so that the script's length is known before they are.
std::string script(size_t program_bytes) {
  std::string text = base::replace_all(std::string(kScript), "@MACHINE@", machine());
  text = base::replace_all(text, "@SIZE@", std::to_string(program_bytes));
  auto filled = [&](uint64_t length) {
    return base::replace_all(base::replace_all(text, "@PROGRAM@", number(length + 1)), "@ARCHIVE@", number(length + program_bytes));
  };
  return filled(filled(0).size());
}

struct CloseArchive {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct CloseEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

class Writer {
 public:
  Writer(const std::string& root, const sync::Aside& aside) : to_(archive_write_new()), content_(root, &aside) {
    const size_t slash = root.rfind('/');
    folder_ = root.substr(slash + 1);
  }

  // ascii: all names are. Others are written as the bytes they are, which makes GNU tar say that it does not know "hdrcharset".
  base::Status open(int fd, Packing packing, bool ascii) {
    archive* to = to_.get();
    const std::string threads = std::to_string(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
    const bool gzip = packing == Packing::kGzip;
    bool good = to && archive_write_set_format_pax_restricted(to) == ARCHIVE_OK &&
                (ascii || archive_write_set_format_option(to, "pax", "hdrcharset", "BINARY") == ARCHIVE_OK) &&
                (gzip ? archive_write_add_filter_gzip(to) : archive_write_add_filter_zstd(to)) == ARCHIVE_OK;
    if (good && gzip) good = archive_write_set_filter_option(to, "gzip", "timestamp", nullptr) == ARCHIVE_OK;  // the same bytes each time
    if (good && !gzip) (void)archive_write_set_filter_option(to, "zstd", "threads", threads.c_str());
    if (!good || archive_write_set_bytes_per_block(to, kBlock) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(to, 1) != ARCHIVE_OK || archive_write_open_fd(to, fd) != ARCHIVE_OK)
      return failed();
    return base::ok();
  }

  base::Status facts(const PackedFacts& facts) {
    const std::string text = encode(facts);
    TRY(header({.path = kPackedFacts, .kind = sync::Kind::kFile, .size = text.size(), .mode = 0644}));
    return archive_write_data(to_.get(), text.data(), text.size()) == static_cast<la_ssize_t>(text.size()) ? base::ok() : failed();
  }

  base::Status put(const Entry& entry) {
    TRY(header(entry));
    if (!entry.is_file()) return base::ok();
    base::Sha256 hash;
    content_.begin(entry);
    while (content_.more()) {
      const std::string_view piece = content_.next({read_.get(), kBlock});
      hash.update(piece);
      if (archive_write_data(to_.get(), piece.data(), piece.size()) != static_cast<la_ssize_t>(piece.size())) return failed();
    }
    if (hash.bytes() == entry.content) return base::ok();
    return base::fail(ErrorKind::kConfig, fmt::format("{} was changed while it was packed", entry.path))
        .with_hint("run the same command again");
  }

  base::Status close() { return archive_write_close(to_.get()) == ARCHIVE_OK ? base::ok() : failed(); }

 private:
  base::Status header(const Entry& entry) {
    const std::unique_ptr<archive_entry, CloseEntry> out(archive_entry_new());
    archive_entry_set_pathname(out.get(), (folder_ + "/" + entry.path).c_str());
    archive_entry_set_filetype(out.get(), entry.kind == sync::Kind::kFolder ? AE_IFDIR
                                          : entry.kind == sync::Kind::kLink ? AE_IFLNK
                                                                            : AE_IFREG);
    archive_entry_set_perm(out.get(), entry.kind == sync::Kind::kLink ? 0777 : entry.mode);
    const timespec time = sync_time(entry.mtime_ns);
    archive_entry_set_mtime(out.get(), time.tv_sec, time.tv_nsec);
    if (entry.is_file()) archive_entry_set_size(out.get(), static_cast<la_int64_t>(entry.size));
    if (entry.kind == sync::Kind::kLink) archive_entry_set_symlink(out.get(), entry.content.c_str());
    return archive_write_header(to_.get(), out.get()) == ARCHIVE_OK ? base::ok() : failed();
  }

  static timespec sync_time(int64_t ns) {
    const int64_t below = ns % 1'000'000'000 < 0 ? 1 : 0;
    return {static_cast<time_t>(ns / 1'000'000'000 - below), static_cast<long>(ns % 1'000'000'000 + below * 1'000'000'000)};
  }

  base::Status failed() const {
    const char* why = to_ ? archive_error_string(to_.get()) : nullptr;
    return base::fail(ErrorKind::kUnfit, "the archive cannot be written").because(why ? why : "");
  }

  std::unique_ptr<archive, CloseArchive> to_;
  sync::ContentReader content_;
  std::unique_ptr<char[]> read_ = std::make_unique_for_overwrite<char[]>(kBlock);
  std::string folder_;
};

bool all_ascii(const std::string& root, const sync::Manifest& manifest) {
  auto ascii = [](const std::string& text) { return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; }); };
  return ascii(root) && std::all_of(manifest.entries.begin(), manifest.entries.end(), [&](const Entry& entry) {
           return ascii(entry.path) && (entry.kind != sync::Kind::kLink || ascii(entry.content));
         });
}

// A file that is being written and takes its place when it is whole. It is always a new file, whatever others have put beside the place.
// Where the file system can make one without a name, nothing is left of it if we are killed.
class Arriving {
 public:
  static base::Result<Arriving> beside(const std::string& place, mode_t mode) {
    Arriving made;
    made.part_ = place + ".part." + os::random_suffix();
    const size_t slash = place.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : place.substr(0, slash + 1);
    made.fd_ = os::Fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
    // Without /proc it could not be given a name.
    made.named_ = !made.fd_.valid() || ::access(made.itself().c_str(), F_OK) != 0;
    if (made.named_) made.fd_ = os::Fd(::open(made.part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (made.fd_.valid()) return made;
    base::Error error = base::system_error("create a file beside", place);
    error.kind = ErrorKind::kUsage;
    return error;
  }
  Arriving(Arriving&&) = default;
  ~Arriving() {
    if (fd_.valid() && named_) (void)::unlink(part_.c_str());
  }
  const os::Fd& fd() const { return fd_; }
  // With errno. A link cannot replace a file, so a file without a name gets one first.
  bool take_place(const std::string& place) {
    if (!named_ && ::linkat(AT_FDCWD, itself().c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
    named_ = true;
    if (::rename(part_.c_str(), place.c_str()) != 0) return false;
    named_ = false;
    return true;
  }

 private:
  Arriving() = default;
  std::string itself() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }
  os::Fd fd_;
  std::string part_;
  bool named_ = false;  // part_ exists
};

base::Status write_program(const os::Fd& to, const std::string& program) {
  TRY_ASSIGN(const std::string bytes, os::read_file(program, kMostProgramBytes));
  TRY(os::write_all(to.get(), script(bytes.size()), "the archive"));
  return os::write_all(to.get(), bytes, "the archive");
}

}  // namespace

base::Result<Packing> packing_of(const std::string& file) {
  for (const char* end : {".tar.zst", ".tzst"})
    if (file.ends_with(end)) return Packing::kZstd;
  for (const char* end : {".tar.gz", ".tgz"})
    if (file.ends_with(end)) return Packing::kGzip;
  for (const char* end : {".run", ".sh"})
    if (file.ends_with(end)) return Packing::kProgram;
  return base::fail(ErrorKind::kUsage,
                    fmt::format("{} does not say how to pack: its name ends neither with .tar.zst, .tar.gz nor .run", base::quote(file)))
      .with_hint("name it for example environment.tar.zst, or environment.run for one that unpacks itself");
}

base::Result<Packed> pack(const Environment& environment, const Carried& carried, const sync::Aside& aside, Packing packing,
                          const std::string& file, const std::string& program, const Progress& progress) {
  TRY_ASSIGN(Arriving arriving, Arriving::beside(file, packing == Packing::kProgram ? 0755 : 0644));
  const os::Fd& to = arriving.fd();
  auto write = [&]() -> base::Status {
    if (packing == Packing::kProgram) TRY(write_program(to, program));
    Writer writer(environment.root, aside);
    TRY(writer.open(to.get(), packing, all_ascii(environment.root, carried.manifest)));
    TRY(writer.facts({environment.root, carried.manifest.bytes(), carried.manifest.entries.size()}));
    size_t done = 0;
    for (const Entry& entry : carried.manifest.entries) {
      TRY(writer.put(entry));
      if (progress) progress(++done, carried.manifest.entries.size());
    }
    return writer.close();
  };
  base::Status written = write();
  struct stat s{};
  if (written.ok() && (::fstat(to.get(), &s) != 0 || ::fsync(to.get()) != 0 || !arriving.take_place(file))) {
    written = base::system_error("finish", file);
    written.error().kind = ErrorKind::kUnfit;
  }
  if (!written.ok()) return std::move(written).error();
  return Packed{static_cast<uint64_t>(s.st_size)};
}

base::Result<uint64_t> archive_begins(const os::Fd& file, const std::string& path) {
  std::string head(kMostHeadBytes, '\0');
  TRY_ASSIGN(const size_t size, os::read_at(file, path, 0, head.data(), head.size()));
  head.resize(size);
  if (!head.starts_with("#!/bin/sh\n")) return uint64_t{0};
  const size_t at = head.find(kMark);
  const size_t end = at == std::string::npos ? at : head.find('\n', at);
  if (end == std::string::npos) return uint64_t{0};
  const base::Result<int64_t> begins = base::parse_int(head.substr(at + kMark.size(), end - at - kMark.size()), 1, 1LL << 44);
  return begins.ok() ? static_cast<uint64_t>(*begins) : uint64_t{0};
}

}  // namespace phalanx::envmove
