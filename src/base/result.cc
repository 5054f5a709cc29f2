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

std::string Error::render() const {
  std::string out = "error: " + message + "\n";
  for (const std::string& doing : context) out += "  while " + doing + "\n";
  if (!cause.empty()) out += "  because " + cause + "\n";
  if (!hint.empty()) out += "\nhint: " + hint + "\n";
  return printable_lines(out);
}

Error system_error(std::string_view operation, std::string_view operand, int error_number) {
  std::string message(operation);
  if (!operand.empty()) message += " " + std::string(operand);
  return fail(ErrorKind::kInternal, message + ": " + std::strerror(error_number));
}

Error system_error(std::string_view operation, std::string_view operand) { return system_error(operation, operand, errno); }

}  // namespace phalanx::base
