// The lines of one writer from "Traceback (most recent call last):" to the line that names the exception. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::diagnosis {

inline constexpr std::string_view kTracebackHead = "Traceback (most recent call last)";
// Between two exceptions of which the second followed from the first.
inline constexpr std::string_view kDirectCause = "The above exception was the direct cause of the following exception";
inline constexpr std::string_view kWhileHandling = "During handling of the above exception, another exception occurred";

class Traceback {
 public:
  // ignored: Python said "Exception ignored in" before it; nothing ended by it.
  Traceback(uint64_t first_line, bool ignored) : first_line_(first_line), ignored_(ignored) {}

  // The next line of the writer, without tags. kEnd: it names the exception. kLost: too long, or something else.
  enum class State { kInside, kEnd, kLost };
  State add(std::string_view line);

  uint64_t first_line() const { return first_line_; }
  bool ignored() const { return ignored_; }
  // "train.py:42 (step)": the innermost frame outside installed packages, else the innermost; empty if there was none.
  const std::string& where() const { return own_.empty() ? innermost_ : own_; }
  // "torch/distributed/rendezvous.py": the innermost frame's file below the installed packages; empty if it is none of theirs.
  const std::string& module() const { return module_; }

 private:
  void add_frame(std::string_view line);

  uint64_t first_line_;
  bool ignored_;
  int lines_ = 0;
  std::string innermost_, own_, module_;
};

}  // namespace phalanx::diagnosis
