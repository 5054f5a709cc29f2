// Errors are values. A function that can fail returns Result<T>; TRY passes a failure up; context() says what was being
// done. Only main prints an Error and turns its kind into an exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace phalanx::base {

// What the caller should do about a failure. The exit code of the program follows from it (exit_code).
enum class ErrorKind {
  kUsage,        // the command line is wrong: 2
  kConfig,       // a file the user wrote is wrong: 2
  kUnfit,        // a host cannot do the job: 3
  kUnreachable,  // a host cannot be reached: 4
  kTimeout,      // something did not happen in time: 5
  kJobFailed,    // the user's program failed: 1
  kInterrupted,  // the operator stopped it: 130
  kInternal,     // our bug, or a system call that has no reason to fail: 70
};

int exit_code(ErrorKind kind);

// message: what failed. context: what was being done, innermost first. cause: why, with operand and value.
// hint: one command (or one sentence) that can be followed as printed. The last three may be empty.
struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string cause;
  std::string hint;
  std::vector<std::string> context;

  Error&& because(std::string why) && {
    cause = std::move(why);
    return std::move(*this);
  }
  Error&& with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }
  Error&& within(std::string doing) && {
    context.push_back(std::move(doing));
    return std::move(*this);
  }
  // "error: …\n  while …\n  because …\n\nhint: …\n", the one shape in which errors are shown. Safe to show (base::printable_lines).
  std::string render() const;
};

inline Error fail(ErrorKind kind, std::string message) { return Error{kind, std::move(message), {}, {}, {}}; }
inline Error usage(std::string message, std::string hint) { return fail(ErrorKind::kUsage, std::move(message)).with_hint(std::move(hint)); }

// A failed system call: "open /x: No such file or directory". Reads errno; call it before anything else can change it.
Error system_error(std::string_view operation, std::string_view operand);
Error system_error(std::string_view operation, std::string_view operand, int error_number);

// A value or an Error. Never empty.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit on purpose, `return value;`
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose, `return fail(…);`

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() & {
    PHALANX_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    PHALANX_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    PHALANX_CHECK(ok());
    return std::move(*value_);
  }
  T* operator->() {
    PHALANX_CHECK(ok());
    return &*value_;
  }
  const T* operator->() const {
    PHALANX_CHECK(ok());
    return &*value_;
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  Error& error() & {
    PHALANX_CHECK(!ok());
    return *error_;
  }
  const Error& error() const& {
    PHALANX_CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    PHALANX_CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status ok() { return Unit{}; }

}  // namespace phalanx::base

// PHALANX_TRY(expr): evaluate a Status (or any Result whose value is not needed); return its Error on failure.
#define PHALANX_TRY(expr)                                         \
  do {                                                            \
    auto try_result_ = (expr);                                    \
    if (!try_result_.ok()) return std::move(try_result_).error(); \
  } while (0)

// PHALANX_TRY_ASSIGN(auto x, expr): the same, keeping the value.
#define PHALANX_TRY_ASSIGN(declaration, expr) PHALANX_TRY_ASSIGN_IMPL_(declaration, expr, PHALANX_TRY_NAME_(try_value_, __LINE__))
#define PHALANX_TRY_ASSIGN_IMPL_(declaration, expr, name) \
  auto name = (expr);                                     \
  if (!name.ok()) return std::move(name).error();         \
  declaration = std::move(name).value()
#define PHALANX_TRY_NAME_(a, b) PHALANX_TRY_NAME2_(a, b)
#define PHALANX_TRY_NAME2_(a, b) a##b
