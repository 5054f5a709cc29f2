#include "diagnosis/logs/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/counted.h"
#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "diagnosis/logs/line.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr int kDeepest = 4;
constexpr size_t kMostRecordBytes = 16 << 20;

// One gzip stream, of any number of members, given on as it comes.
class Gunzip {
 public:
  Gunzip() { good_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~Gunzip() { ::inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // False: broken; what came before has been given.
  bool feed(std::string_view bytes, LogScan& scan) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (good_ && (stream_.avail_in > 0 || pending_)) {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      int result = ::inflate(&stream_, Z_NO_FLUSH);
      scan.feed(std::string_view(out_.data(), out_.size() - stream_.avail_out));
      pending_ = stream_.avail_out == 0;
      ended_ = result == Z_STREAM_END;
      if (result == Z_BUF_ERROR) break;
      if (ended_) {
        pending_ = false;
        good_ = ::inflateReset(&stream_) == Z_OK;
      } else if (result != Z_OK) {
        good_ = false;
      }
    }
    return good_;
  }
  bool whole() const { return good_ && ended_; }

 private:
  z_stream stream_{};
  std::vector<char> out_ = std::vector<char>(kPiece);
  bool good_ = false, pending_ = false, ended_ = false;
};

base::Error unreadable(base::Error error) {
  error.kind = base::ErrorKind::kConfig;
  return error;
}

bool is_log_name(const std::string& name) {
  for (std::string_view end : {".log", ".txt", ".out", ".err", ".gz"})
    if (name.ends_with(end)) return true;
  return name == "stdout" || name == "stderr";
}

// "9" before "10".
bool natural(const std::string& a, const std::string& b) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    size_t end_a = i, end_b = j;
    while (end_a < a.size() && digit(a[end_a])) ++end_a;
    while (end_b < b.size() && digit(b[end_b])) ++end_b;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    if (int order = a.compare(i, end_a - i, b, j, end_b - j)) return order < 0;
    i = end_a, j = end_b;
  }
  return a.size() - i < b.size() - j;
}

struct Closer {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

void collect(const std::string& folder, int depth, std::vector<std::string>& out) {
  std::unique_ptr<DIR, Closer> open(::opendir(folder.c_str()));
  if (!open || depth > kDeepest) return;
  std::vector<std::string> folders;
  while (dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name.starts_with('.') || out.size() > kMostLogFiles) continue;
    std::string path = folder + "/" + name;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) folders.push_back(path);
    else if (S_ISREG(status.st_mode) && is_log_name(name)) out.push_back(path);
  }
  std::sort(folders.begin(), folders.end(), natural);
  for (const std::string& path : folders) collect(path, depth + 1, out);
}

LogFile named(const std::string& path) {
  NamedRank rank = rank_of_file(path);
  return {.name = path, .rank = rank.rank, .local_rank = rank.local_rank, .host = {}};
}

// Which host each rank ran on, from run.json; what cannot be read there is left out.
void add_hosts(const std::string& folder, std::vector<LogFile>& files) {
  auto opened = os::open_regular(folder + "/run.json");
  if (!opened.ok()) return;
  auto text = os::read_rest(*opened, "run.json", kMostRecordBytes);
  if (!text.ok()) return;
  auto record = base::parse_json(*text);
  if (!record.ok() || !record->is_object() || !record->contains("hosts") || !(*record)["hosts"].is_array()) return;
  for (const base::Json& host : (*record)["hosts"]) {
    auto first = base::get_int(host, "first_rank"), ranks = base::get_int(host, "ranks");
    auto name = base::get_string(host, "host");
    if (!first || !ranks || !name) continue;
    for (LogFile& file : files)
      if (file.rank >= *first && file.rank < *first + *ranks) file.host = *name;
  }
}

std::string run_name(std::string_view folder) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  return std::string(folder.substr(folder.rfind('/') + 1));
}

}  // namespace

base::Result<std::vector<LogFile>> find_logs(const std::string& operand) {
  if (operand == "-") return std::vector<LogFile>{LogFile{.name = "-", .host = {}}};
  if (!os::exists(operand)) return base::fail(base::ErrorKind::kConfig, fmt::format("file not found: {}", base::quote(operand)));
  if (!os::is_folder(operand)) return std::vector<LogFile>{named(operand)};
  bool run = os::is_folder(operand + "/ranks");
  std::vector<std::string> paths;
  collect(run ? operand + "/ranks" : operand, run ? kDeepest : 0, paths);
  if (paths.empty() && run)
    return base::fail(base::ErrorKind::kConfig, fmt::format("no logs in {}", base::quote(operand)))
        .because("no rank of this run has printed anything")
        .with_hint("phalanx why " + run_name(operand));
  if (paths.empty())
    return base::fail(base::ErrorKind::kConfig, fmt::format("no logs in {}", base::quote(operand)))
        .because("no file in this directory ends in .log, .txt, .out, .err or .gz")
        .with_hint("name the files");
  if (paths.size() > kMostLogFiles)
    return base::fail(base::ErrorKind::kConfig, base::counted("more than {} logs in {}", kMostLogFiles, base::quote(operand)))
        .with_hint("name the files");
  std::sort(paths.begin(), paths.end(), natural);
  std::vector<LogFile> files;
  for (const std::string& path : paths) {
    files.push_back(named(path));
    files.back().found = true;
  }
  if (run) {
    add_hosts(operand, files);
    // How ranks ended, which those that were killed could not say.
    std::string events = operand + "/events.jsonl";
    if (os::open_regular(events).ok()) files.push_back({.name = std::move(events), .host = {}, .found = true});
  }
  return files;
}

base::Result<ReadLog> read_log(LogScan& scan, const LogFile& file) {
  os::Fd opened;
  int fd = 0;
  if (file.found) {
    base::Result<os::Fd> regular = os::open_regular(file.name);
    if (!regular.ok()) return unreadable(std::move(regular).error());
    opened = std::move(regular).value();
    fd = opened.get();
  } else if (file.name != "-") {
    opened = os::Fd(::open(file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!opened.valid()) return unreadable(base::system_error("open", file.name));
    fd = opened.get();
  }
  scan.begin_file(file);
  std::vector<char> piece(kPiece);
  std::optional<Gunzip> gunzip;
  ReadLog out;
  bool first = true;
  while (true) {
    size_t have = 0;
    // Whole pieces also from a pipe, so that the first bytes are seen together.
    while (have < piece.size()) {
      ssize_t got = ::read(fd, piece.data() + have, piece.size() - have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        base::Error error = unreadable(base::system_error("read", file.name));
        scan.end_file();
        return error;
      }
      if (got == 0) break;
      have += static_cast<size_t>(got);
    }
    if (have == 0) break;
    std::string_view bytes(piece.data(), have);
    if (first && bytes.starts_with("\x1f\x8b")) gunzip.emplace();
    first = false;
    if (!gunzip) {
      scan.feed(bytes);
    } else if (!gunzip->feed(bytes, scan)) {
      break;
    }
  }
  out.damaged = gunzip && !gunzip->whole();
  scan.end_file();
  return out;
}

}  // namespace phalanx::diagnosis
