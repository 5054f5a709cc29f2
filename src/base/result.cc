#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/unicode.h"

namespace phalanx::base {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "phalanx: bug: %s:%d: %s\n", file, line, condition);
  std::abort();
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kConfig: return 2;
    case ErrorKind::kUnfit: return 3;
    case ErrorKind::kUnreachable: return 4;
    case ErrorKind::kTimeout: return 5;
    case ErrorKind::kJobFailed: return 1;
    case ErrorKind::kInterrupted: return 130;
    case ErrorKind::kInternal: return 70;
  }
  return 70;
}

// Parts may quote a host or a rank, with line ends: none of their lines looks like the beginning of another part.
static std::string with_lines_indented(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != ' ' && text[i + 1] != '\n') out += "    ";
  }
  return out;
}

std::string Error::render() const {
  std::string out = "error: " + with_lines_indented(message) + "\n";
  for (const std::string& doing : context) out += "  while " + with_lines_indented(doing) + "\n";
  if (!cause.empty()) out += "  because " + with_lines_indented(cause) + "\n";
  if (!hint.empty()) out += "\nhint: " + with_lines_indented(hint) + "\n";
  return printable_lines(out);
}

Error system_error(std::string_view operation, std::string_view operand, int error_number) {
  std::string message(operation);
  if (!operand.empty()) message += " " + std::string(operand);
  return fail(ErrorKind::kInternal, message + ": " + std::strerror(error_number));
}

Error system_error(std::string_view operation, std::string_view operand) { return system_error(operation, operand, errno); }

}  // namespace phalanx::base
