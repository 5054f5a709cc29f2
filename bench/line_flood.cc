// A flood of lines and its judge, for bench/output.sh.
//
//   line_flood write LINES BYTES [RANK]      LINES numbered lines of BYTES bytes each. The rank is that of the launcher
//                                            (RANK, OMPI_COMM_WORLD_RANK) or the number at the end of the host's name, less 1
//   line_flood check RANKS LINES BYTES       reads what a launcher made of RANKS such floods and prints
//                                            seconds-from-first-to-last-byte bytes whole lost torn out-of-order
//   line_flood measure FILE COMMAND…         runs the command and writes "seconds peak-KiB exit-code" to FILE; the peak is
//                                            that of the largest process waited for by the command, itself included
//
// Every byte of a line follows from its rank and number, so the judge compares whole lines. What stands before a line is
// the launcher's own prefix and may be anything.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"

using namespace phalanx;

namespace {

constexpr size_t kHeadBytes = 24;  // "R0012 0000001234 1a2b3c4d "

uint32_t checksum(uint32_t rank, uint32_t number) {
  uint64_t mixed = (uint64_t{rank} << 32 | number) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> 32);
}

void put_digits(char* to, int digits, uint32_t value, uint32_t base) {
  for (int i = digits - 1; i >= 0; --i, value /= base) to[i] = "0123456789abcdef"[value % base];
}

// Writes the line of exactly `bytes` bytes to `to`.
void make_line(char* to, size_t bytes, uint32_t rank, uint32_t number) {
  to[0] = 'R';
  put_digits(to + 1, 3, rank, 10);
  to[4] = ' ';
  put_digits(to + 5, 9, number, 10);
  to[14] = ' ';
  put_digits(to + 15, 8, checksum(rank, number), 16);
  to[23] = ' ';
  std::memset(to + kHeadBytes, 'a' + static_cast<int>(number % 26), bytes - kHeadBytes - 1);
  to[bytes - 1] = '\n';
}

long number_of(const char* text) {
  base::Result<int64_t> number = base::parse_int(text, 0, 999'999'999);
  if (!number.ok()) {
    fmt::print(stderr, "{}", number.error().render());
    std::exit(2);
  }
  return static_cast<long>(*number);
}

uint32_t own_rank() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char* value = std::getenv(name)) return static_cast<uint32_t>(number_of(value));
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  const char* digits = host + std::strcspn(host, "0123456789");
  return static_cast<uint32_t>(number_of(digits) - 1);
}

int write_flood(uint32_t lines, size_t bytes, uint32_t rank) {
  // As a program with a full buffer does it: 64 KiB at a time, lines cut wherever the buffer ends.
  constexpr size_t kBufferBytes = 64 << 10;
  std::string buffer;
  std::string line(bytes, '\0');
  for (uint32_t number = 0; number < lines; ++number) {
    make_line(line.data(), bytes, rank, number);
    buffer += line;
    if (buffer.size() < kBufferBytes) continue;
    if (!os::write_all(1, std::string_view(buffer).substr(0, kBufferBytes), "stdout").ok()) return 1;
    buffer.erase(0, kBufferBytes);
  }
  return os::write_all(1, buffer, "stdout").ok() ? 0 : 1;
}

struct Judge {
  size_t ranks, lines, bytes;
  std::vector<bool> seen = std::vector<bool>(ranks * lines);
  std::vector<size_t> next = std::vector<size_t>(ranks);
  std::string expected = std::string(bytes, '\0');
  size_t whole = 0, torn = 0, disorder = 0;

  void line(std::string_view text) {
    std::string_view own = text.size() >= bytes ? text.substr(text.size() - bytes) : std::string_view();
    uint32_t rank = 0, number = 0;
    bool good = !own.empty() && own[0] == 'R';
    for (size_t i = 1; good && i < 14; ++i) {
      if (i == 4) continue;
      good = own[i] >= '0' && own[i] <= '9';
      uint32_t& field = i < 4 ? rank : number;
      field = field * 10 + static_cast<uint32_t>(own[i] - '0');
    }
    good = good && rank < ranks && number < lines;
    if (good) make_line(expected.data(), bytes, rank, number);
    if (!good || own != expected) {
      ++torn;
      return;
    }
    size_t index = rank * lines + number;
    if (!seen[index]) ++whole;
    seen[index] = true;
    if (number != next[rank]) ++disorder;
    next[rank] = number + 1;
  }
};

int check_flood(size_t ranks, size_t lines, size_t bytes) {
  Judge judge{ranks, lines, bytes};
  std::vector<char> buffer(1 << 20);
  size_t held = 0, total = 0;
  os::Mono first, last;
  for (;;) {
    os::IoStep step = os::read_step(0, buffer.data() + held, buffer.size() - held);
    if (step.kind != os::IoStep::kBytes) break;
    last = os::mono_now();
    if (total == 0) first = last;
    total += step.bytes;
    std::string_view text(buffer.data(), held + step.bytes);
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) judge.line(text.substr(0, end + 1));
    held = text.size() < buffer.size() / 2 ? text.size() : 0;  // a line of half a megabyte is torn
    if (held == 0 && !text.empty()) ++judge.torn;
    std::memmove(buffer.data(), text.data(), held);
  }
  double seconds = std::chrono::duration<double>(last - first).count();
  fmt::print("{:.4f} {} {} {} {} {}\n", seconds, total, judge.whole, ranks * lines - judge.whole, judge.torn + (held > 0), judge.disorder);
  return 0;
}

int measure(const char* file, char** command) {
  os::Mono begin = os::mono_now();
  pid_t pid = ::fork();
  if (pid == 0) {
    ::execvp(command[0], command);
    std::perror(command[0]);
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  if (pid < 0 || ::wait4(pid, &status, 0, &usage) != pid) return 70;
  double seconds = std::chrono::duration<double>(os::mono_now() - begin).count();
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  FILE* out = std::fopen(file, "w");
  if (!out) return 70;
  fmt::print(out, "{:.4f} {} {}\n", seconds, usage.ru_maxrss, code);
  std::fclose(out);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "write" && argc >= 4) {
    long lines = number_of(argv[2]), bytes = number_of(argv[3]);
    if (bytes > static_cast<long>(kHeadBytes))
      return write_flood(static_cast<uint32_t>(lines), static_cast<size_t>(bytes),
                         argc > 4 ? static_cast<uint32_t>(number_of(argv[4])) : own_rank());
  }
  if (verb == "check" && argc == 5 && number_of(argv[4]) > static_cast<long>(kHeadBytes))
    return check_flood(static_cast<size_t>(number_of(argv[2])), static_cast<size_t>(number_of(argv[3])),
                       static_cast<size_t>(number_of(argv[4])));
  if (verb == "measure" && argc > 3) return measure(argv[2], argv + 3);
  fmt::print(stderr, "usage: line_flood write LINES BYTES [RANK] | check RANKS LINES BYTES | measure FILE COMMAND...\n");
  return 2;
}
