#include "os/process_mark.h"

#include <unistd.h>

#include <charconv>
#include <string_view>

#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::os {
namespace {

constexpr size_t kMostBytes = 4096;

std::string word_in(const std::string& path) {
  base::Result<std::string> text = read_file(path, kMostBytes);
  return text.ok() ? std::string(base::trim(*text)) : "";
}

std::string machine_id() { return word_in("/etc/machine-id"); }

std::string pid_namespace() {
  char name[64];
  const ssize_t n = ::readlink("/proc/self/ns/pid", name, sizeof(name));
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : "";
}

// 0: there is no such process, or only what is left of one (a zombie does nothing any more). -1: it cannot be looked up.
int64_t start_of(int64_t pid) {
  base::Result<std::optional<std::string>> stat = read_if_present("/proc/" + std::to_string(pid) + "/stat", kMostBytes);
  if (!stat.ok()) return -1;
  if (!*stat) return 0;
  const std::string_view text = **stat;
  const size_t name_end = text.rfind(')');  // field 2; it may hold blanks
  if (name_end == std::string_view::npos || name_end + 2 > text.size()) return -1;
  const std::vector<std::string_view> fields = base::split(text.substr(name_end + 2), ' ');
  constexpr size_t kState = 0, kStart = 19;  // fields 3 and 22
  if (fields.size() <= kStart) return -1;
  if (fields[kState] == "Z" || fields[kState] == "X") return 0;
  int64_t start = -1;
  std::from_chars(fields[kStart].data(), fields[kStart].data() + fields[kStart].size(), start);
  return start;
}

}  // namespace

bool is_of_earlier_boot(const ProcessMark& mark) {
  const std::string boot = boot_id();
  return !mark.machine_id.empty() && mark.machine_id == machine_id() && !mark.boot_id.empty() && !boot.empty() && mark.boot_id != boot;
}

ProcessMark own_mark() { return {machine_id(), boot_id(), pid_namespace(), ::getpid(), start_of(::getpid())}; }

Lives lives(const ProcessMark& mark) {
  if (mark.boot_id.empty() || mark.pid_namespace.empty() || mark.pid <= 0 || mark.started <= 0) return Lives::kUnknown;
  if (mark.boot_id != boot_id() || mark.pid_namespace != pid_namespace()) return Lives::kUnknown;
  const int64_t start = start_of(mark.pid);
  if (start < 0) return Lives::kUnknown;
  return start == mark.started ? Lives::kYes : Lives::kNo;
}

}  // namespace phalanx::os
