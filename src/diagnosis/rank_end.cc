#include "diagnosis/rank_end.h"

#include <signal.h>
#include <sys/wait.h>

#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace diagnosis {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr size_t kMostEvidence = 300;  // bytes

// gloo/transport/tcp/pair.cc; torch/csrc/distributed/c10d: ProcessGroupNCCL, TCPStore, socket; torch/distributed/elastic; NCCL
// src/misc/socket.cc
constexpr std::string_view kVictims[] = {
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "remote process exited or there was a network error",
    "NCCL communicator was aborted",
    "NCCL Error 6: remote process",
    "ncclRemoteError",
    "Timed out waiting",
    "Watchdog caught collective operation timeout",
    "Some NCCL operations have failed or timed out",
    "The store was closed",
    "failed to recv, got 0 bytes",
    "recvValue failed",
    "sendBytes failed",
    "recvVector failed",
    "ChildFailedError",
    "SignalException",
    "Application timeout caused pair closure",
};

// A shell or a launcher in between returns 128 + signal.
std::optional<int> signal_of(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  int code = WEXITSTATUS(status);
  for (int s : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGTERM, SIGFPE, SIGILL})
    if (code == 128 + s) return s;
  return std::nullopt;
}

std::string one_line(std::string_view text) {
  std::string_view line = base::trim(text);
  return std::string(line.substr(0, std::min(line.find('\n'), kMostEvidence)));
}

std::string line_with(std::string_view text, std::string_view part) {
  for (std::string_view line : base::split_lines(text))
    if (line.find(part) != std::string_view::npos) return one_line(line);
  return "";
}

// What the kernel killed for memory, if it did.
std::optional<EndReading> memory(std::string_view kernel) {
  for (std::string_view mark : {"cgroup:", "Memory cgroup out of memory"})
    if (std::string line = line_with(kernel, mark); !line.empty()) return EndReading{"RUN-OOM-CGROUP", false, line, ""};
  if (std::string line = line_with(kernel, "Killed process"); !line.empty()) return EndReading{"RUN-OOM-HOST", false, line, ""};
  return std::nullopt;
}

std::string error_file_message(std::string_view text) {
  base::Result<base::Json> json = base::parse_json(text);
  if (text.empty() || !json.ok() || !json->is_object()) return "";
  if (auto plain = base::get_string(*json, "message")) return *plain;
  auto it = json->find("message");
  return it == json->end() ? "" : base::get_string(*it, "message").value_or("");
}

bool frame_line(std::string_view line) { return base::trim(line).starts_with("File \""); }

// "  File "/data/train.py", line 42, in step" → "train.py:42 (step)"
std::string frame(std::string_view line) {
  size_t quote = line.find('"'), end = line.find('"', quote + 1), number = line.find(", line "), in = line.find(", in ");
  if (end == std::string_view::npos || number == std::string_view::npos) return "";
  std::string_view path = line.substr(quote + 1, end - quote - 1);
  std::string_view digits = line.substr(number + 7, in == std::string_view::npos ? in : in - number - 7);
  std::string text = fmt::format("{}:{}", path.substr(path.rfind('/') + 1), digits.substr(0, digits.find_first_not_of("0123456789")));
  if (in != std::string_view::npos) text += fmt::format(" ({})", base::trim(line.substr(in + 5)));
  return text;
}

bool of_a_library(std::string_view line) {
  for (std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen ", "<string>"})
    if (line.find(part) != std::string_view::npos) return true;
  return false;
}

std::string innermost(std::string_view traceback) {
  std::string own, any;
  for (std::string_view line : base::split_lines(traceback)) {
    if (!frame_line(line)) continue;
    any = frame(line);
    if (!of_a_library(line)) own = any;
  }
  return own.empty() ? any : own;
}

// The exception of a traceback: its first line without indentation behind the frames.
std::string exception_line(std::string_view traceback) {
  std::string found;
  bool frames = false;
  for (std::string_view line : base::split_lines(traceback)) {
    if (frame_line(line)) frames = true;
    bool indented = line.starts_with(" ") || line.starts_with("\t");
    if (frames && !indented && !base::trim(line).empty()) return one_line(line);
  }
  return found;
}

std::string_view last_line(std::string_view text) {
  std::string_view said = base::trim(text);
  size_t newline = said.rfind('\n');
  return newline == std::string_view::npos ? said : said.substr(newline + 1);
}

EndReading by_signal(int number, const RankEnd& end) {
  EndReading reading;
  switch (number) {
    case SIGSEGV:
    case SIGILL:
    case SIGFPE: reading.code = "RUN-SEGFAULT"; break;
    case SIGABRT: reading.code = "RUN-ABORTED"; break;
    case SIGBUS: reading.code = "RUN-BUS-ERROR"; break;
    case SIGKILL: reading.code = "RUN-KILLED"; break;
    default: reading.code = "RUN-TERMINATED"; break;
  }
  if (number == SIGKILL)
    if (std::optional<EndReading> killed = memory(end.kernel)) return *killed;
  reading.evidence = one_line(end.kernel);
  if (number == SIGABRT && reading.evidence.empty()) {
    for (std::string_view mark : {"terminate called", "what():", "Assertion", "Check failed"})
      if (reading.evidence.empty()) reading.evidence = line_with(end.last_words, mark);
    reading.victim = victim_line(last_line(end.last_words)) || victim_line(reading.evidence);
  }
  return reading;
}

}  // namespace

bool victim_line(std::string_view line) {
  for (std::string_view phrase : kVictims)
    if (line.find(phrase) != std::string_view::npos) return true;
  return false;
}

std::string_view last_traceback(std::string_view text) {
  size_t at = text.rfind(kTraceback);
  if (at == std::string_view::npos) return {};
  // Nothing but the exception's own lines follows a traceback; what a thread or a later print says is cut at an empty line.
  std::string_view rest = text.substr(at);
  size_t end = rest.find("\n\n");
  return rest.substr(0, end);
}

EndReading read_end(const RankEnd& end) {
  if (std::optional<int> number = signal_of(end.status)) return by_signal(*number, end);
  EndReading reading{"RUN-EXIT-CODE", false, std::string(one_line(last_line(end.last_words))), ""};
  std::string_view traceback = last_traceback(end.last_words);
  std::string said = error_file_message(end.error_file);
  if (!traceback.empty() || !said.empty()) {
    reading.code = "RUN-EXCEPTION";
    reading.evidence = said.empty() ? exception_line(traceback) : one_line(said);
    reading.where = innermost(traceback);
    if (reading.evidence.empty()) reading.evidence = one_line(last_line(end.last_words));
  }
  bool child_killed = reading.evidence.find("killed by signal") != std::string::npos ||
                      reading.evidence.find("exited unexpectedly") != std::string::npos ||
                      reading.evidence.find("died with <Signals.SIGKILL") != std::string::npos;
  if (child_killed)
    if (std::optional<EndReading> killed = memory(end.kernel)) return *killed;
  reading.victim = victim_line(reading.evidence);
  return reading;
}

}  // namespace diagnosis
