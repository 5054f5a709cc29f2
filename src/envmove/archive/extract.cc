#include "envmove/archive/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "sync/store.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using base::Json;

constexpr size_t kBlock = 1 << 20;
constexpr size_t kMostFactsBytes = 64 << 10;
constexpr size_t kShownPath = 200;
constexpr uint64_t kDiskBlock = 4096;
constexpr uint64_t kLookAgain = 64 << 20;  // bytes between two looks at the disk, where the archive does not say how much it is
constexpr mode_t kModes = 0755;

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};

base::Error refused(std::string_view path, const std::string& why) {
  return base::fail(ErrorKind::kConfig, fmt::format("the archive is refused at {}", base::quote(base::printable(path, kShownPath))))
      .because(why);
}

// Without "." and empty names. Empty: the top folder itself.
base::Result<std::string> plain(std::string_view path) {
  if (path.starts_with('/')) return refused(path, "an absolute path");
  std::vector<std::string_view> names;
  for (std::string_view name : base::split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name == "..") return refused(path, "a path with ..");
    if (name.size() > sync::kMostNameBytes || name.find('\0') != std::string_view::npos) return refused(path, "a name that is too long");
    names.push_back(name);
  }
  if (names.size() > sync::kMostDepth || path.size() > sync::kMostPathBytes) return refused(path, "a path that is too long or too deep");
  std::string out;
  for (std::string_view name : names) out += (out.empty() ? "" : "/") + std::string(name);
  return out;
}

std::string text_of(const char* bytes, const char* utf8) { return bytes ? bytes : utf8 ? utf8 : ""; }

class Extraction {
 public:
  Extraction(archive* from, const os::Fd& into, const ExtractLimits& limits, const std::function<void(uint64_t)>& progress)
      : from_(from), into_(into), limits_(limits), progress_(progress) {}

  base::Result<Extracted> run() {
    archive_entry* entry = nullptr;
    for (size_t count = 0;; ++count) {
      const int got = archive_read_next_header(from_, &entry);
      if (got == ARCHIVE_EOF) break;
      if (got < ARCHIVE_WARN) return damaged();
      if (count >= limits_.entries)
        return base::fail(ErrorKind::kConfig, base::counted("the archive has more than {} entries", limits_.entries));
      TRY(take(entry, count == 0));
    }
    if (out_.files == 0 && folders_.empty()) return base::fail(ErrorKind::kConfig, "the archive is empty");
    TRY(finish_folders());
    return std::move(out_);
  }

 private:
  base::Error damaged() const {
    const char* why = archive_error_string(from_);
    return base::fail(ErrorKind::kConfig, "the archive is damaged, incomplete, or of an unknown format").because(why ? why : "");
  }

  base::Status take(archive_entry* entry, bool first) {
    const std::string path = text_of(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry));
    if (path.empty()) return refused("", "an entry without a name");
    TRY_ASSIGN(const std::string name, plain(path));
    const std::string link = text_of(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry));
    const mode_t type = archive_entry_filetype(entry);
    if (!link.empty()) return hard_link(name, link);
    if (type == AE_IFDIR) return folder(name, archive_entry_perm(entry) & kModes, time_of(entry));
    if (name.empty()) return refused(path, "the top folder is no folder");
    if (type == AE_IFLNK) return symbolic_link(name, text_of(archive_entry_symlink(entry), archive_entry_symlink_utf8(entry)));
    if (type != AE_IFREG) return refused(path, "neither a file nor a folder nor a link");
    if (first && name.substr(name.rfind('/') + 1) == kPackedFacts) return facts(name);
    return file(name, entry);
  }

  static timespec time_of(archive_entry* entry) {
    return {archive_entry_mtime(entry), std::clamp<long>(archive_entry_mtime_nsec(entry), 0, 999'999'999)};
  }

  base::Status facts(const std::string& name) {
    std::string text(kMostFactsBytes, '\0');
    const la_ssize_t size = archive_read_data(from_, text.data(), text.size());
    if (size < 0) return damaged();
    text.resize(static_cast<size_t>(size));
    out_.facts = decode_facts(text);
    if (!out_.facts) return refused(name, "its description of the archive is malformed");
    return check_space(out_.facts->bytes + out_.facts->files * kDiskBlock);
  }

  base::Status check_space(uint64_t needed) const {
    struct statvfs disk{};
    if (::fstatvfs(into_.get(), &disk) != 0) return base::ok();
    const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free >= limits_.reserve && needed <= free - limits_.reserve) return base::ok();
    return base::fail(ErrorKind::kUnfit, fmt::format("the disk has too little free space: {} are needed, {} are free",
                                                     base::format_bytes(needed + limits_.reserve), base::format_bytes(free)))
        .with_hint("unpack it on another disk");
  }

  // The folder that `name` lies in, made where it is missing, and the last name.
  base::Result<os::Fd> folder_of(const std::string& name, std::string& last) {
    const size_t slash = name.rfind('/');
    last = slash == std::string::npos ? name : name.substr(slash + 1);
    const std::string above = slash == std::string::npos ? "" : name.substr(0, slash);
    if (!last_folder_.valid() || above != last_path_) {
      last_folder_.reset();
      TRY(make_above(above));
      base::Result<os::Fd> opened = sync::enter_below(into_.get(), above);
      if (!opened.ok()) return refused(name, "a path through a link or a file");
      last_folder_ = std::move(*opened);
      last_path_ = above;
    }
    return os::Fd(::fcntl(last_folder_.get(), F_DUPFD_CLOEXEC, 0));
  }

  base::Status make_above(const std::string& path) {
    if (path.empty() || folders_.contains(path)) return base::ok();
    return folder(path, kModes, {0, UTIME_OMIT}, "a path through a link or a file");
  }

  base::Status folder(const std::string& name, mode_t mode, timespec time, const char* in_the_way = "a second entry of this name") {
    if (name.empty()) return base::ok();
    auto [at, is_new] = folders_.insert_or_assign(name, Folder{mode, time});
    if (!is_new) return base::ok();
    std::string last;
    TRY_ASSIGN(const os::Fd above, folder_of(name, last));
    if (::mkdirat(above.get(), last.c_str(), 0700) != 0) return errno == EEXIST ? refused(name, in_the_way) : failed("mkdir", name);
    return base::ok();
  }

  base::Status symbolic_link(const std::string& name, const std::string& target) {
    if (target.empty() || target.size() > sync::kMostPathBytes) return refused(name, "a link that leads nowhere");
    std::string last;
    TRY_ASSIGN(const os::Fd above, folder_of(name, last));
    if (::symlinkat(target.c_str(), above.get(), last.c_str()) != 0) return failed("symlink", name);
    ++out_.files;
    return base::ok();
  }

  // To a file that this archive has written, by the same rules.
  base::Status hard_link(const std::string& name, const std::string& to) {
    TRY_ASSIGN(const std::string target, plain(to));
    if (name.empty() || target.empty()) return refused(name, "a hard link to a folder");
    const size_t slash = target.rfind('/');
    base::Result<os::Fd> from = sync::enter_below(into_.get(), slash == std::string::npos ? "" : target.substr(0, slash));
    const std::string there = target.substr(slash == std::string::npos ? 0 : slash + 1);
    struct stat s{};
    if (!from.ok() || ::fstatat(from->get(), there.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      return refused(name, "a hard link to what is no file of the archive");
    std::string last;
    TRY_ASSIGN(const os::Fd above, folder_of(name, last));
    if (::linkat(from->get(), there.c_str(), above.get(), last.c_str(), 0) != 0) return failed("link", name);
    ++out_.files;
    return base::ok();
  }

  base::Status file(const std::string& name, archive_entry* entry) {
    if (archive_entry_size_is_set(entry))
      TRY(count(archive_entry_size(entry) < 0 ? limits_.bytes : static_cast<uint64_t>(archive_entry_size(entry))));
    std::string last;
    TRY_ASSIGN(const os::Fd above, folder_of(name, last));
    const os::Fd to(::openat(above.get(), last.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to.valid()) return failed("open", name);
    for (;;) {
      const la_ssize_t size = archive_read_data(from_, buffer_.data(), buffer_.size());
      if (size < 0) return damaged();
      if (size == 0) break;
      out_.bytes += static_cast<uint64_t>(size);
      if (out_.bytes > limits_.bytes) return too_much();
      TRY(write(to, std::string_view(buffer_).substr(0, static_cast<size_t>(size)), name));
      if (progress_) progress_(static_cast<uint64_t>(size));
    }
    const timespec times[2] = {time_of(entry), time_of(entry)};
    if (::fchmod(to.get(), archive_entry_perm(entry) & kModes) != 0 || ::futimens(to.get(), times) != 0) return failed("chmod", name);
    ++out_.files;
    return base::ok();
  }

  base::Error too_much() const {
    return base::fail(ErrorKind::kConfig, fmt::format("the archive has more than {}", base::format_bytes(limits_.bytes)));
  }

  base::Status count(uint64_t size) {
    if (size > limits_.bytes || out_.bytes > limits_.bytes - size) return too_much();
    if (out_.facts || out_.bytes + size < looked_) return base::ok();
    looked_ = out_.bytes + size + kLookAgain;
    return check_space(size);
  }

  base::Status write(const os::Fd& to, std::string_view bytes, const std::string& name) const {
    while (!bytes.empty()) {
      const os::IoStep step = os::write_step(to.get(), bytes.data(), bytes.size());
      if (step.kind != os::IoStep::kBytes) {
        errno = step.error_number;
        return failed("write", name);
      }
      bytes.remove_prefix(step.bytes);
    }
    return base::ok();
  }

  base::Error failed(const char* doing, const std::string& name) const {
    if (errno == EEXIST) return refused(name, "a second entry of this name");
    base::Error error = base::system_error(doing, name);
    error.kind = ErrorKind::kUnfit;
    return error;
  }

  // From the deepest up: what comes into a folder changes its time.
  base::Status finish_folders() {
    last_folder_.reset();
    for (auto at = folders_.rbegin(); at != folders_.rend(); ++at) {
      TRY_ASSIGN(const os::Fd folder, sync::enter_below(into_.get(), at->first));
      const timespec times[2] = {at->second.time, at->second.time};
      if (::fchmod(folder.get(), at->second.mode | 0700) != 0 || ::futimens(folder.get(), times) != 0) return failed("chmod", at->first);
    }
    return base::ok();
  }

  struct Folder {
    mode_t mode = kModes;
    timespec time{};
  };
  archive* from_;
  const os::Fd& into_;
  const ExtractLimits& limits_;
  const std::function<void(uint64_t)>& progress_;
  Extracted out_;
  uint64_t looked_ = 0;
  std::map<std::string, Folder> folders_;
  os::Fd last_folder_;
  std::string last_path_, buffer_ = std::string(kBlock, '\0');
};

}  // namespace

std::string encode(const PackedFacts& facts) {
  return base::to_text(
             {{"magic", "phalanx environment"}, {"version", 1}, {"prefix", facts.prefix}, {"bytes", facts.bytes}, {"files", facts.files}}) +
         "\n";
}

std::optional<PackedFacts> decode_facts(std::string_view text) {
  const base::Result<Json> json = base::parse_json(text, kMostFactsBytes);
  if (!json.ok() || !json->is_object() || base::get_string(*json, "magic") != "phalanx environment") return std::nullopt;
  const auto version = json->find("version"), bytes = json->find("bytes"), files = json->find("files");
  for (const auto& number : {version, bytes, files})
    if (number == json->end() || !number->is_number_unsigned()) return std::nullopt;
  PackedFacts facts{base::get_string(*json, "prefix").value_or(""), bytes->get<uint64_t>(), files->get<uint64_t>()};
  const bool prefix =
      facts.prefix.empty() || (facts.prefix.starts_with('/') && facts.prefix.size() > 1 && facts.prefix.size() <= sync::kMostPathBytes);
  if (version->get<uint64_t>() != 1 || !prefix || facts.bytes > sync::kMostCopyBytes || facts.files > sync::kMostEntries)
    return std::nullopt;
  return facts;
}

base::Result<Extracted> extract(const os::Fd& archive, const os::Fd& into, const ExtractLimits& limits,
                                const std::function<void(uint64_t bytes)>& progress) {
  const std::unique_ptr<struct archive, CloseArchive> from(archive_read_new());
  if (!from || archive_read_support_filter_gzip(from.get()) != ARCHIVE_OK || archive_read_support_filter_zstd(from.get()) != ARCHIVE_OK ||
      archive_read_support_format_tar(from.get()) != ARCHIVE_OK)
    return base::fail(ErrorKind::kInternal, "libarchive cannot read archives");
  if (archive_read_open_fd(from.get(), archive.get(), kBlock) != ARCHIVE_OK) {
    const char* why = archive_error_string(from.get());
    return base::fail(ErrorKind::kConfig, "the archive cannot be read: it is neither tar, tar.gz nor tar.zst").because(why ? why : "");
  }
  return Extraction(from.get(), into, limits, progress).run();
}

}  // namespace phalanx::envmove
