#include "cli/records/log_excerpt.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr const char* kBefore = ".1";  // logs/runs/files.h

// Several files read as one.
class Joined {
 public:
  // Nothing where no regular file lies.
  base::Status add(const std::string& folder, const std::string& name) {
    TRY_ASSIGN(std::optional<os::Fd> file, os::open_regular_below(folder, name));
    if (!file) return base::ok();
    const std::string path = folder + "/" + name;
    TRY_ASSIGN(const struct stat s, os::stat_of(*file, path));
    for (const Part& part : parts_)
      if (part.device == s.st_dev && part.inode == s.st_ino) return base::ok();  // it was turned between two looks
    parts_.push_back({std::move(*file), path, static_cast<size_t>(s.st_size), s.st_dev, s.st_ino});
    size_ += parts_.back().size;
    return base::ok();
  }
  size_t size() const { return size_; }
  // Shorter where a file has become so.
  base::Result<std::string> read(size_t from, size_t size) const {
    std::string text;
    for (const Part& part : parts_) {
      if (from < part.size) {
        TRY_ASSIGN(std::string piece, read_part(part, from, std::min(size - text.size(), part.size - from)));
        text += piece;
      }
      from -= std::min(from, part.size);
      if (text.size() >= size) break;
    }
    return text;
  }

 private:
  struct Part {
    os::Fd file;
    std::string path;
    size_t size;
    dev_t device;
    ino_t inode;
  };
  static base::Result<std::string> read_part(const Part& part, size_t from, size_t size) {
    std::string text(size, '\0');
    TRY_ASSIGN(const size_t got, os::read_at(part.file, part.path, static_cast<off_t>(from), text.data(), size));
    text.resize(got);
    return text;
  }
  std::vector<Part> parts_;  // in the order of reading
  size_t size_ = 0;
};

// Up to the last line's end.
void end_at_line(std::string& head) {
  size_t last = head.find_last_of("\r\n");
  head.resize(last == std::string::npos ? 0 : last + 1);
}

// From the first line's end, and after the END of a PEM block whose BEGIN was cut off: nothing else tells its lines from other text.
void begin_at_line(std::string& tail) {
  size_t first = tail.find_first_of("\r\n");
  tail.erase(0, first == std::string::npos ? tail.size() : first + 1);
  size_t end = tail.find("-----END ");
  if (end == std::string::npos || tail.find("-----BEGIN ") < end) return;
  size_t line = tail.find_first_of("\r\n", end);
  tail.erase(0, line == std::string::npos ? tail.size() : line + 1);
}

}  // namespace

base::Result<std::string> excerpt_of(const std::string& run_folder, std::string_view name, size_t most) {
  Joined joined;
  TRY(joined.add(run_folder, std::string(name) + kBefore));
  TRY(joined.add(run_folder, std::string(name)));
  const size_t size = joined.size(), end = most - most / 4;
  if (size <= most) return joined.read(0, size);
  TRY_ASSIGN(std::string head, joined.read(0, most / 4));
  TRY_ASSIGN(std::string tail, joined.read(size - end, end));
  end_at_line(head);
  begin_at_line(tail);
  // A block that begins in the head and ends in the part left out must not hide everything up to the next one in the tail.
  size_t begin = head.rfind("-----BEGIN ");
  if (begin != std::string::npos && head.find("-----END ", begin) == std::string::npos) head.resize(begin);
  return head + fmt::format("[phalanx report: {} omitted]\n", base::format_bytes(size - head.size() - tail.size())) + tail;
}

}  // namespace phalanx::cli
