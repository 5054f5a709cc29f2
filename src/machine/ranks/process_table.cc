#include "machine/ranks/process_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr os::milliseconds kCountBudget{150};
constexpr size_t kMostCommand = 200;

bool names_a_secret(std::string_view word) {
  std::string lower = base::to_lower(word.substr(0, 256));
  for (const char* mark : {"key", "token", "secret", "password", "passwd", "credential"})
    if (lower.find(mark) != std::string::npos) return true;
  return false;
}

}  // namespace

bool parse_stat(std::string_view text, ProcessStat& stat) {
  // The name may hold anything, also blanks and ')': it ends at the last one.
  size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
  stat.comm = std::string(text.substr(open + 1, close - open - 1));
  std::vector<std::string_view> f = base::split_words(text.substr(close + 1));
  if (f.size() < 20 || f[0].size() != 1) return false;
  stat.state = f[0][0];
  stat.parent = base::parse_int(f[1], 0, INT64_MAX).ok() ? *base::parse_int(f[1], 0, INT64_MAX) : 0;
  base::Result<int64_t> session = base::parse_int(f[3], 0, INT64_MAX);
  stat.session = session.ok() ? *session : 0;
  base::Result<int64_t> threads = base::parse_int(f[17], 0, INT64_MAX), start = base::parse_int(f[19], 0, INT64_MAX);
  stat.threads = threads.ok() ? *threads : 0;
  stat.start_ticks = start.ok() ? *start : 0;
  return true;
}

bool read_stat(const std::string& root, int64_t pid, ProcessStat& stat) {
  base::Result<std::string> text = os::read_file(fmt::format("{}/proc/{}/stat", root, pid), 4096);
  return text.ok() && parse_stat(*text, stat);
}

bool each_process(const std::string& root, os::milliseconds budget, const std::function<bool(int64_t, const ProcessStat&)>& visit) {
  os::Mono end = os::mono_now() + budget;
  for (int64_t pid : numbers_in(root + "/proc")) {
    if (os::mono_now() > end) return false;
    ProcessStat stat;
    if (read_stat(root, pid, stat) && !visit(pid, stat)) return true;
  }
  return true;
}

int64_t count_threads(const std::string& root, uid_t uid) {
  int64_t count = 0;
  bool whole = each_process(root, kCountBudget, [&](int64_t pid, const ProcessStat& stat) {
    if (owner_of(root, pid) == uid) count += stat.threads;
    return true;
  });
  return whole ? count : 0;
}

std::string hide_secrets(std::string_view zero_separated) {
  std::string out;
  bool hide = false;
  for (std::string_view word : base::split(zero_separated, '\0')) {
    if (word.empty()) continue;
    if (out.size() > kMostCommand) break;
    if (!out.empty()) out += ' ';
    size_t equals = word.find('=');
    bool secret = names_a_secret(word.substr(0, equals));
    if (hide && word[0] != '-') out += "…";
    else if (secret && equals != std::string_view::npos) out += std::string(word.substr(0, equals)) + "=…";
    else out += std::string(word.substr(0, kMostCommand + 1));
    // The value of "--api_key" is the next word; a word of a path or script that happens to contain "key" has none.
    hide = secret && equals == std::string_view::npos && word[0] == '-';
  }
  std::string shown = base::printable(out, 4 * kMostCommand);
  if (shown.size() <= kMostCommand) return shown;
  size_t cut = kMostCommand;
  while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xc0) == 0x80) --cut;
  return shown.substr(0, cut) + "…";
}

std::string command_line(const std::string& root, int64_t pid) {
  base::Result<std::string> text = os::read_file(fmt::format("{}/proc/{}/cmdline", root, pid), 1 << 20);
  return text.ok() ? hide_secrets(*text) : "";
}

std::map<std::string, std::string> environment_of(const std::string& root, int64_t pid) {
  std::map<std::string, std::string> out;
  base::Result<std::string> text = os::read_file(fmt::format("{}/proc/{}/environ", root, pid), 1 << 20);
  if (!text.ok()) return out;
  for (std::string_view entry : base::split(*text, '\0')) {
    size_t equals = entry.find('=');
    if (equals != std::string_view::npos && equals > 0) out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

int64_t age_s(const std::string& root, const ProcessStat& stat) {
  double uptime = std::strtod(read_word(root + "/proc/uptime").c_str(), nullptr);
  int64_t ticks = ::sysconf(_SC_CLK_TCK);
  return ticks > 0 ? std::max<int64_t>(0, static_cast<int64_t>(uptime) - stat.start_ticks / ticks) : 0;
}

std::string user_name(const std::string& root, uid_t uid) {
  base::Result<std::string> text = os::read_file(root + "/etc/passwd", 4 << 20);
  std::string wanted = std::to_string(uid);
  if (text.ok())
    for (std::string_view line : base::split_lines(*text)) {
      std::vector<std::string_view> f = base::split(line, ':');
      if (f.size() >= 3 && f[2] == wanted) return std::string(f[0]);
    }
  return "uid " + wanted;
}

uid_t owner_of(const std::string& root, int64_t pid) {
  struct stat s{};
  return ::stat(fmt::format("{}/proc/{}", root, pid).c_str(), &s) == 0 ? s.st_uid : static_cast<uid_t>(-1);
}

}  // namespace phalanx::machine
