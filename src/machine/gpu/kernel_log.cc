// Xids: what the driver writes to the kernel's log about a GPU that is not well. "NVRM: Xid (PCI:0000:34:00): 79, pid=…, GPU has fallen off
// the bus." and, of an NVSwitch, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 32 …".
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "machine/gpu/sources.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostXids = 64;
constexpr size_t kLongestCard = 48;  // with the MIG instance
constexpr size_t kMostLogBytes = 8 << 20;
constexpr std::chrono::milliseconds kMostTime{200};

bool of_interest(std::string_view line) { return line.find("Xid (PCI:") != std::string_view::npos; }

int64_t digits(std::string_view text) {
  int64_t value = -1;
  for (char c : text) {
    if (c < '0' || c > '9' || value > 1'000'000'000'000'000) break;
    value = std::max<int64_t>(value, 0) * 10 + (c - '0');
  }
  return value;
}

// "6,1234,56789012,-;message": microseconds after boot.
std::optional<double> kmsg_seconds(std::string_view line) {
  size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> head = base::split(line.substr(0, semicolon), ',');
  if (head.size() < 3 || digits(head[0]) < 0) return std::nullopt;
  int64_t us = digits(head[2]);
  return us < 0 ? std::nullopt : std::optional(static_cast<double>(us) / 1e6);
}
// "[ 1234.567890] message"
std::optional<double> dmesg_seconds(std::string_view line) {
  if (!line.starts_with("[")) return std::nullopt;
  std::string number(base::trim(line.substr(1, line.find(']') == std::string_view::npos ? 0 : line.find(']') - 1)));
  char* end = nullptr;
  double value = ::strtod(number.c_str(), &end);
  return number.empty() || *end != 0 ? std::nullopt : std::optional(value);
}
// "Nov 21 11:15:55 host …" (no year: the last such day) or "2024-11-21T11:15:55.123+08:00 host …", in Unix seconds.
std::optional<int64_t> syslog_time(std::string_view line, int64_t now_s) {
  std::string text(line.substr(0, 40));
  tm t{};
  if (const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &t)) {
    while (*rest == '.' || (*rest >= '0' && *rest <= '9')) ++rest;
    tm zone{};
    bool known = ::strptime(rest, "%z", &zone) != nullptr;
    t.tm_isdst = -1;
    return known ? ::timegm(&t) - zone.tm_gmtoff : ::mktime(&t);
  }
  time_t now = static_cast<time_t>(now_s);
  tm today{};
  ::localtime_r(&now, &today);
  t = tm{};
  t.tm_year = today.tm_year;
  if (!::strptime(text.c_str(), "%b %d %H:%M:%S", &t)) return std::nullopt;
  t.tm_isdst = -1;
  int64_t when = ::mktime(&t);
  if (when > now_s + 86400) {
    --t.tm_year;
    when = ::mktime(&t);
  }
  return when;
}

// Seconds before now; -1: the line does not say. Less than -1: from before this boot.
int64_t age_of(std::string_view line, double uptime_s, int64_t now_s) {
  std::optional<double> since_boot = kmsg_seconds(line);
  if (!since_boot) since_boot = dmesg_seconds(line);
  if (since_boot) return uptime_s < 0 ? -1 : std::max<int64_t>(0, static_cast<int64_t>(uptime_s - *since_boot));
  std::optional<int64_t> when = syslog_time(line, now_s);
  if (!when) return -1;
  int64_t age = std::max<int64_t>(0, now_s - *when);
  return uptime_s >= 0 && static_cast<double>(age) > uptime_s + 60 ? -2 : age;
}

std::optional<Xid> parse_line(std::string_view line) {
  size_t word = line.find("Xid (PCI:");
  if (word == std::string_view::npos) return std::nullopt;
  Xid x;
  x.nvswitch = word > 0 && line[word - 1] == 'S';
  size_t begin = word + 9, close = line.find(')', begin);
  if (close == std::string_view::npos || close - begin > kLongestCard || line.substr(close, 3) != "): ") return std::nullopt;
  x.pci = base::to_lower(line.substr(begin, std::min(line.find(' ', begin), close) - begin));  // not the MIG instance after it
  if (x.pci.find('.') == std::string::npos) x.pci += ".0";
  x.xid = digits(line.substr(close + 3));
  if (x.xid < 0) return std::nullopt;
  size_t message = line.rfind("NVRM:", word);
  if (x.nvswitch || message == std::string_view::npos) message = x.nvswitch ? line.rfind("nvidia-", word) : word;
  if (message == std::string_view::npos) message = word;
  for (char c : line.substr(message, 240)) x.line += c >= 0x20 && c < 0x7f ? c : '?';
  return x;
}

// The end of a log file.
std::optional<std::string> read_tail(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return std::nullopt;
  off_t from = std::max<off_t>(0, size - static_cast<off_t>(kMostLogBytes));
  std::string text(static_cast<size_t>(size - from), '\0');
  ssize_t n = ::pread(fd.get(), text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
  return text;
}

// The lines of interest in the ring buffer. A record that is overwritten while we read (EPIPE) is passed over.
base::Result<std::string> read_ring(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode)) return read_tail(path).value_or("");  // a recorded one
  std::string kept;
  char record[16 << 10];
  os::Mono end = os::mono_now() + kMostTime;
  size_t total = 0;
  while (total < 8 * kMostLogBytes && kept.size() < kMostLogBytes && os::mono_now() < end) {
    ssize_t n = ::read(fd.get(), record, sizeof(record));
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    total += static_cast<size_t>(n);
    std::string_view text(record, static_cast<size_t>(n));
    if (of_interest(text)) kept.append(text);
  }
  return kept;
}

}  // namespace

std::vector<Xid> parse_kernel_log(std::string_view text, double uptime_s, int64_t now_s) {
  std::vector<Xid> all;
  for (std::string_view line : base::split_lines(text)) {
    if (!of_interest(line)) continue;
    std::optional<Xid> x = parse_line(line);
    if (!x) continue;
    x->age_s = age_of(line, uptime_s, now_s);
    if (x->age_s < -1) continue;
    all.push_back(std::move(*x));
    if (all.size() > 4 * kMostXids) all.erase(all.begin(), all.end() - kMostXids);
  }
  if (all.size() > kMostXids) all.erase(all.begin(), all.end() - kMostXids);
  return all;
}

void read_kernel_log(const std::string& root, GpuFacts& facts) {
  base::Result<std::string> up = os::read_file(root + "/proc/uptime", 256);
  double uptime_s = up.ok() ? ::strtod(up->c_str(), nullptr) : -1;
  int64_t now_s = ::time(nullptr);
  base::Result<std::string> ring = read_ring(root + "/dev/kmsg");
  if (ring.ok()) {
    facts.xids = parse_kernel_log(*ring, uptime_s, now_s);
    return;
  }
  facts.kernel_log = ring.error().message;
  for (const char* file : {"/var/log/kern.log", "/var/log/messages", "/var/log/syslog", "/var/log/dmesg"}) {
    std::optional<std::string> text = read_tail(root + file);
    if (!text) continue;
    facts.xids = parse_kernel_log(*text, uptime_s, now_s);
    facts.kernel_log.clear();
    return;
  }
}

}  // namespace phalanx::machine
