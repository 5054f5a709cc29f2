#include "cli/log_excerpt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace cli {
namespace {

// Shorter where the file has become so.
base::Result<std::string> part_of(const os::Fd& file, const std::string& path, off_t from, size_t size) {
  std::string text(size, '\0');
  TRY_ASSIGN(const size_t got, os::read_at(file, path, from, text.data(), size));
  text.resize(got);
  return text;
}

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

base::Result<std::string> excerpt_of(const std::string& path, size_t most) {
  TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_if_present(path));
  if (!file) return std::string();
  TRY_ASSIGN(const struct stat s, os::stat_of(*file, path));
  size_t size = static_cast<size_t>(s.st_size);
  if (size <= most) return part_of(*file, path, 0, size);
  const size_t end = most - most / 4;
  TRY_ASSIGN(std::string head, part_of(*file, path, 0, most / 4));
  TRY_ASSIGN(std::string tail, part_of(*file, path, static_cast<off_t>(size - end), end));
  end_at_line(head);
  begin_at_line(tail);
  // A block that begins in the head and ends in the part left out must not hide everything up to the next one in the tail.
  size_t begin = head.rfind("-----BEGIN ");
  if (begin != std::string::npos && head.find("-----END ", begin) == std::string::npos) head.resize(begin);
  return head + fmt::format("[phalanx report: {} left out]\n", base::format_bytes(size - head.size() - tail.size())) + tail;
}

}  // namespace cli
