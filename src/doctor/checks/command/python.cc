// Lints of how a Python script lets its ranks meet.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"

namespace phalanx::doctor {
namespace {

std::optional<int64_t> number_at(std::string_view text, size_t& at) {
  while (at < text.size() && (base::is_blank(text[at]) || text[at] == '(')) ++at;
  size_t begin = at;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && at - begin < 6) ++at;
  if (at == begin) return std::nullopt;
  return std::stoll(std::string(text.substr(begin, at - begin)));
}

struct Range {
  int64_t low = 0, high = 0;
};

// "54000 + random.randint(0, 888)", "random.randint(20000, 60000)", "$((RANDOM % 1000 + 50000))", "shuf -i 10000-65535".
std::optional<Range> random_range(std::string_view line) {
  std::string lower = base::to_lower(line);
  if (lower.find("port") == std::string::npos && lower.find("tcp") == std::string::npos) return std::nullopt;
  for (std::string_view call : {"randint(", "randrange(", "shuf -i "}) {
    size_t at = lower.find(call);
    if (at == std::string::npos) continue;
    size_t before = lower.find_last_of('+', at), base_at = 0;
    int64_t offset = 0;
    if (before != std::string::npos && call.front() == 'r') {
      size_t end = lower.find_last_not_of(" (", before - 1);
      size_t begin = end == std::string::npos ? end : lower.find_last_not_of("0123456789", end);
      base_at = begin == std::string::npos ? 0 : begin + 1;
      offset = number_at(lower, base_at).value_or(0);
    }
    at += call.size();
    auto low = number_at(lower, at);
    if (low && at < lower.size() && (lower[at] == ',' || lower[at] == '-')) ++at;
    auto high = number_at(lower, at);
    if (low && high && *low < *high) return Range{offset + *low, offset + *high};
  }
  if (size_t at = lower.find("random"); at != std::string::npos && lower.find("$((") != std::string::npos) {
    size_t percent = lower.find('%', at), plus = lower.find('+');
    if (percent == std::string::npos || plus == std::string::npos) return std::nullopt;
    size_t offset_at = plus < at ? lower.find("$((") + 3 : plus + 1;
    auto modulus = number_at(lower, ++percent), offset = number_at(lower, offset_at);
    if (modulus && offset && *modulus > 0) return Range{*offset, *offset + *modulus - 1};
  }
  return std::nullopt;
}

void random_port(const Situation& s, Findings& findings) {
  for (std::string_view role : {"script", "shell"}) {
    for (const UserFile& file : user_files(s, role)) {
      const machine::NetworkFacts& n = s.hosts[file.hosts.front()].facts.network;
      if (n.port_range_low <= 0) continue;
      for (const CodeLine& line : code_lines(file.file->text)) {
        auto range = random_range(line.text);
        if (!range || range->high < n.port_range_low || range->low > n.port_range_high) continue;
        std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number);
        tell(findings, s, file.hosts,
             tr("{}: ports {}–{}; outgoing connections take {}–{}", at, range->low, range->high, n.port_range_low, n.port_range_high));
        break;
      }
    }
  }
}

bool names_localhost(const std::string& text) {
  return text.find("localhost") != std::string::npos || text.find("127.0.0.1") != std::string::npos;
}

// os.environ["MASTER_ADDR"] = …; not setdefault, not a comparison.
bool sets(const std::string& line, const char* name) {
  for (char quote : {'"', '\''}) {
    std::string written = fmt::format("environ[{}{}{}]", quote, name, quote);
    size_t at = line.find(written);
    if (at == std::string::npos) continue;
    std::string_view rest = base::trim(std::string_view(line).substr(at + written.size()));
    return rest.starts_with('=') && !rest.starts_with("==");
  }
  return false;
}

// The line above says that what follows holds only where no launcher has set it: "if 'MASTER_PORT' not in os.environ:".
bool is_fallback(const std::string& line) {
  return (line.starts_with("if ") || line.starts_with("elif ")) && line.find("environ") != std::string::npos;
}

void init_localhost(const Situation& s, Findings& findings) {
  if (s.single()) return;
  for (const UserFile& file : user_files(s, "script")) {
    std::string before;
    for (const CodeLine& line : code_lines(file.file->text)) {
      const bool tcp = line.text.find("tcp://") != std::string::npos && line.text.find("init") != std::string::npos;
      const bool fallback = is_fallback(std::exchange(before, line.text));
      if (!names_localhost(line.text) || (!tcp && (fallback || !sets(line.text, "MASTER_ADDR")))) continue;
      std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number);
      tell(findings, s, file.hosts, tr("{}: {}; the job has {} hosts", at, line.text.substr(0, 120), s.hosts.size()));
      break;
    }
  }
}

void hard_coded_port(const Situation& s, Findings& findings) {
  if (!s.job.serves_store || s.job.world < 2) return;
  for (const UserFile& file : user_files(s, "script")) {
    std::string before;
    for (const CodeLine& line : code_lines(file.file->text)) {
      const bool tcp = line.text.find("tcp://") != std::string::npos && line.text.find("init_") != std::string::npos;
      const bool fallback = is_fallback(std::exchange(before, line.text));
      if (!tcp && (fallback || !sets(line.text, "MASTER_PORT"))) continue;
      std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number);
      tell(findings, s, file.hosts, tr("{}: {}", at, line.text.substr(0, 120)),
           fmt::format("phalanx run -H {} --no-store -- python {}", host_list(s), base::shell_quote(shown(s, file.file->path))));
      break;
    }
  }
}

constexpr Row kPythonRows[] = {
    {"CMD-RANDOM-PORT", Severity::kWarning, random_port},
    {"CMD-INIT-LOCALHOST", Severity::kWarning, init_localhost},
    {"CMD-HARD-CODED-PORT", Severity::kWarning, hard_coded_port},
};

}  // namespace

std::span<const Row> python_rows() { return kPythonRows; }

}  // namespace phalanx::doctor
