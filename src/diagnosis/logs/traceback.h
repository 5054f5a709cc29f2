// The lines of one writer from "Traceback (most recent call last):" to the line that names the exception. A log that was cut may have lost
// the first line and begin with a frame; a traceback that another program prints is often indented as a whole. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::diagnosis {

inline constexpr std::string_view kTracebackHead = "Traceback (most recent call last)";
// Between two exceptions of which the second followed from the first.
// Part of every frame: `  File "train.py", line 42, in step`.
inline constexpr std::string_view kFrameMark = "\", line ";
inline constexpr std::string_view kDirectCause = "The above exception was the direct cause of the following exception";
inline constexpr std::string_view kWhileHandling = "During handling of the above exception, another exception occurred";

// Whether a line names the exception that a traceback ends with: "RuntimeError: …", "torch.cuda.OutOfMemoryError: …".
bool is_exception_line(std::string_view line);

// How far a line with a frame of a traceback is indented; nothing: it is none.
std::optional<size_t> frame_indent(std::string_view line);

class Traceback {
 public:
  // ignored: Python said "Exception ignored in" before it; nothing ended by it. head: its first line, without tags.
  Traceback(uint64_t first_line, bool ignored, std::string_view head);
  // One whose first lines are lost: it begins with a frame, which is still to be added.
  static Traceback without_head(size_t frame_indent);

  // The next line of the writer, without tags. kEnd: it names the exception. kLost: too long, or something else.
  enum class State { kInside, kEnd, kLost };
  State add(std::string_view line);

  uint64_t first_line() const { return first_line_; }  // of its head; 0: lost
  bool ignored() const { return ignored_; }
  // "train.py:42 (step)": the innermost frame outside installed packages, else the innermost; empty if there was none.
  const std::string& where() const { return own_.empty() ? innermost_ : own_; }
  // The same of the innermost frame, in whatever file.
  const std::string& innermost() const { return innermost_; }
  // The source line of the frame of where(), if it was printed: "assert not args.bf16".
  const std::string& code() const { return own_.empty() ? innermost_code_ : own_code_; }
  // "torch/distributed/rendezvous.py": the innermost frame's file below the installed packages; empty if it is none of theirs.
  const std::string& module() const { return module_; }
  // "datasets/arrow_writer.py(write_table) …": its frames, the last two parts of each path; of very many the innermost.
  const std::string& way() const { return way_; }

 private:
  bool add_frame(std::string_view line);
  void add_code(std::string_view line);

  uint64_t first_line_;
  bool ignored_;
  size_t indent_;
  bool headless_ = false;
  int lines_ = 0;
  bool code_follows_ = false, own_code_follows_ = false;  // the last line was a frame; one outside installed packages
  std::string innermost_, own_, module_, innermost_code_, own_code_, way_;
};

}  // namespace phalanx::diagnosis
