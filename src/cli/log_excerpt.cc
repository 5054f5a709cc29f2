#include "cli/log_excerpt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace cli {
namespace {

std::string part_of(const os::Fd& file, off_t from, size_t size) {
  std::string text(size, '\0');
  size_t got = 0;
  while (got < size) {
    ssize_t n = ::pread(file.get(), text.data() + got, size - got, from + static_cast<off_t>(got));
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
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

std::string excerpt_of(const std::string& run_folder, std::string_view name, size_t most) {
  base::Result<os::Fd> file = os::open_regular_below(run_folder, name);
  struct stat s{};
  if (!file.ok() || ::fstat(file->get(), &s) != 0) return "";
  size_t size = static_cast<size_t>(s.st_size);
  if (size <= most) return part_of(*file, 0, size);
  std::string head = part_of(*file, 0, most / 4), tail = part_of(*file, static_cast<off_t>(size - (most - most / 4)), most - most / 4);
  end_at_line(head);
  begin_at_line(tail);
  // A block that begins in the head and ends in the part left out must not hide everything up to the next one in the tail.
  size_t begin = head.rfind("-----BEGIN ");
  if (begin != std::string::npos && head.find("-----END ", begin) == std::string::npos) head.resize(begin);
  return head + fmt::format("[phalanx report: {} left out]\n", base::format_bytes(size - head.size() - tail.size())) + tail;
}

}  // namespace cli
