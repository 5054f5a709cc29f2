#include "agent/ranks/progress_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "logs/progress_file.h"
#include "os/apart.h"

namespace phalanx::agent {
namespace {

constexpr size_t kMostEntries = 100'000;  // of a folder that is searched
constexpr size_t kMostCandidates = 16;    // the last of them
constexpr int kEnter = O_PATH | O_DIRECTORY | O_CLOEXEC;

struct State {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};
  bool operator==(const State& o) const {
    return device == o.device && inode == o.inode && size == o.size && changed.tv_sec == o.changed.tv_sec &&
           changed.tv_nsec == o.changed.tv_nsec;
  }
};

// version_9 before version_10.
bool earlier(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  const std::string_view front = pattern.substr(0, star), back = pattern.substr(star + 1);
  return name.size() >= front.size() + back.size() && name.starts_with(front) && name.ends_with(back);
}

std::string read_at(int fd, off_t from, size_t most) {
  std::string text(most, 0);
  const ssize_t n = ::pread(fd, text.data(), most, from);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

class Watcher {
 public:
  Watcher(const std::string& folder, const std::string& path) : absolute_(path.starts_with('/')), csv_(path.ends_with(".csv")) {
    root_ = os::Fd(::open(absolute_ ? "/" : folder.c_str(), kEnter));
    for (std::string_view part : base::split(path, '/'))
      if (!part.empty() && part != ".") parts_.emplace_back(part);
    for (const std::string& name : names()) remember(name);
  }

  std::optional<wire::RankProgress> look() {
    const std::vector<std::string> found = names();
    for (auto name = found.rbegin(); name != found.rend(); ++name) {
      if (!chosen_.empty() && *name != chosen_) continue;
      struct stat now;
      const os::Fd file = opened(*name, now);
      if (!file.valid()) continue;
      const State state = state_of(now);
      const auto before = before_.find(*name);
      if (before != before_.end() && before->second == state) continue;  // nothing new
      if (seen_ && *seen_ == state) return std::nullopt;
      if (before != before_.end() && !grown(before->second, state)) before_.erase(before);
      chosen_ = *name;
      seen_ = state;
      return read(file.get(), state, before_.count(*name) ? before_.at(*name).size : 0);
    }
    return std::nullopt;
  }

 private:
  static State state_of(const struct stat& s) { return {s.st_dev, s.st_ino, s.st_size, s.st_mtim}; }
  static bool grown(const State& before, const State& now) {
    return before.device == now.device && before.inode == now.inode && before.size <= now.size;
  }

  void remember(const std::string& name) {
    struct stat now;
    const os::Fd file = opened(name, now);
    if (file.valid()) before_[name] = state_of(now);
  }

  os::Fd enter(const os::Fd& above, const std::string& name) const {
    return os::Fd(::openat(above.get(), name.c_str(), kEnter | (absolute_ ? 0 : O_NOFOLLOW)));
  }

  // What the `*` may stand for, the last of them; without one, one empty name.
  std::vector<std::string> names() const {
    const auto star =
        std::find_if(parts_.begin(), parts_.end(), [](const std::string& part) { return part.find('*') != std::string::npos; });
    if (star == parts_.end()) return {""};
    os::Fd at(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
    for (auto part = parts_.begin(); part != star && at.valid(); ++part) at = enter(at, *part);
    os::Fd listed(at.valid() ? ::openat(at.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    DIR* entries = listed.valid() ? ::fdopendir(listed.get()) : nullptr;
    if (!entries) return {};
    (void)listed.release();
    std::vector<std::string> out;
    size_t seen = 0;
    for (const dirent* entry = ::readdir(entries); entry && seen < kMostEntries; entry = ::readdir(entries), ++seen) {
      if (entry->d_name[0] == '.' || !matches(*star, entry->d_name)) continue;
      out.emplace_back(entry->d_name);
      if (out.size() <= kMostCandidates) continue;
      out.erase(std::min_element(out.begin(), out.end(), earlier));
    }
    ::closedir(entries);
    std::sort(out.begin(), out.end(), earlier);
    return out;
  }

  os::Fd opened(const std::string& star, struct stat& now) const {
    os::Fd at(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
    for (size_t i = 0; i < parts_.size() && at.valid(); ++i) {
      const std::string& name = parts_[i].find('*') == std::string::npos ? parts_[i] : star;
      if (i + 1 < parts_.size()) at = enter(at, name);
      else at = os::Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    }
    if (at.valid() && ::fstat(at.get(), &now) == 0 && S_ISREG(now.st_mode) && now.st_uid == ::geteuid()) return at;
    return {};
  }

  // A line may be half written: then the next look finds it whole, since the file changes again.
  std::optional<wire::RankProgress> read(int fd, const State& now, off_t old_end) {
    const off_t from = std::max<off_t>(csv_ ? 0 : old_end, now.size - static_cast<off_t>(logs::kMostProgressTail));
    std::string tail = read_at(fd, from, logs::kMostProgressTail);
    if (!csv_) return logs::progress_in_json_lines(tail);
    const std::string head = from == 0 ? tail : read_at(fd, 0, logs::kMostProgressHead);
    if (from > 0) tail.erase(0, std::min(tail.size(), tail.find('\n') + 1));
    return logs::progress_in_csv(head, tail);
  }

  bool absolute_, csv_;
  os::Fd root_;
  std::vector<std::string> parts_;
  std::map<std::string, State> before_;  // as the files were at the start, by what the `*` stood for
  std::string chosen_;                   // the one that changed first
  std::optional<State> seen_;            // of that one, when it was read
};

void watch_file(const std::string& folder, const std::string& path, int control, int events) {
  Watcher watcher(folder, path);
  std::string told;
  for (bool last = false;;) {
    if (const std::optional<wire::RankProgress> progress = watcher.look()) {
      const std::string line = wire::encode(*progress);
      pollfd room{events, POLLOUT, 0};  // then a whole line fits (pipe(7))
      if (line != told && ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) &&
          ::write(events, line.data(), line.size()) == static_cast<ssize_t>(line.size()))
        told = line;
    }
    if (last) return;
    pollfd end{control, POLLIN, 0};
    last = ::poll(&end, 1, static_cast<int>(ProgressReader::kPeriod.count())) != 0;
  }
}

}  // namespace

base::Result<std::unique_ptr<ProgressReader>> ProgressReader::start(const std::string& folder, const std::string& path, int events) {
  const bool known = path.ends_with(".jsonl") || path.ends_with(".csv");
  const size_t star = path.find('*');
  const bool several =
      star != std::string::npos && (path.find('*', star + 1) != std::string::npos || path.find('/', star) == std::string::npos);
  const std::vector<std::string_view> parts = base::split(path, '/');
  if (!known || several || path.size() > 4096 || std::find(parts.begin(), parts.end(), "..") != parts.end())
    return base::fail(base::ErrorKind::kUsage, fmt::format("{}: {} is no .jsonl or .csv file", kProgressFileVariable, base::quote(path)))
        .with_hint("out/trainer_log.jsonl, or lightning_logs/version_*/metrics.csv");
  TRY_ASSIGN(os::PipeEnds control, os::make_pipe());
  const int heard = control.read.get();
  TRY_ASSIGN(pid_t pid, os::fork_apart("phalanx-file", {heard, events}, [&] { watch_file(folder, path, heard, events); }));
  return std::unique_ptr<ProgressReader>(new ProgressReader(pid, std::move(control.write)));
}

ProgressReader::~ProgressReader() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // not reaped, so it is still this one
}

void ProgressReader::finish() {
  if (pid_ <= 0) return;
  control_.reset();
  const os::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd end{ended.get(), POLLIN, 0};
  if (ended.valid()) ::poll(&end, 1, static_cast<int>(kLastLook.count()));
  if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = 0;
    return;
  }
  ::kill(pid_, SIGKILL);  // in a dead file system it stays; it is not the ranks'
}

}  // namespace phalanx::agent
