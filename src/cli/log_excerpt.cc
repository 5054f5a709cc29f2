#include "cli/log_excerpt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace cli {

std::string excerpt_of(const std::string& path, size_t most) {
  base::Result<os::Fd> file = os::open_regular(path);
  struct stat s{};
  if (!file.ok() || ::fstat(file->get(), &s) != 0) return "";
  auto part = [&](off_t from, size_t size) {
    std::string text(size, '\0');
    size_t got = 0;
    while (got < size) {
      ssize_t n = ::pread(file->get(), text.data() + got, size - got, from + static_cast<off_t>(got));
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    text.resize(got);
    return text;
  };
  size_t size = static_cast<size_t>(s.st_size);
  if (size <= most) return part(0, size);
  size_t first = most / 4, last = most - first;
  std::string head = part(0, first), tail = part(static_cast<off_t>(size - last), last);
  head.resize(head.find_last_of("\r\n") == std::string::npos ? 0 : head.find_last_of("\r\n") + 1);
  tail.erase(0, tail.find_first_of("\r\n") == std::string::npos ? tail.size() : tail.find_first_of("\r\n") + 1);
  return head + fmt::format("[phalanx report: {} left out]\n", base::format_bytes(size - head.size() - tail.size())) + tail;
}

}  // namespace cli
