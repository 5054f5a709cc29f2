// A file as the style test sees it: its text, and the same text with comments and string contents blanked out, so that
// rules about code never trip over prose. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::tidy {

struct Finding {
  std::string path;
  int line = 0;      // from 1; 0 when the file as a whole is meant
  std::string rule;  // "layer", "line-length", …
  std::string what;
};

struct Include {
  int line = 0;
  std::string path;  // of #include "path"; system headers are not listed
};

class Source {
 public:
  Source(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  // As long as text(), with the same newlines. Comments, and what stands between quotes, are spaces.
  const std::string& code() const { return code_; }
  // As long as text(), with the same newlines. All but comments is spaces; of a file that is not C++, everything.
  std::string comments() const;
  // "src/os/fd.h" gives {"src", "os", "fd.h"}.
  const std::vector<std::string>& parts() const { return parts_; }
  bool header() const { return path_.ends_with(".h"); }
  bool cpp() const { return header() || path_.ends_with(".cc"); }
  bool markdown() const { return path_.ends_with(".md"); }
  std::vector<Include> includes() const;
  int line_of(size_t offset) const;

 private:
  std::string path_;
  std::string text_;
  std::string code_;
  std::vector<std::string> parts_;
};

struct Quoted {
  size_t begin = 0;     // of its first quote
  size_t end = 0;       // after its last quote
  std::string content;  // of neighbours together, escapes of white space and quotes undone
};
std::vector<Quoted> literals(const Source& source);  // of C++, but not raw ones

std::string blank_comments_and_strings(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace phalanx::tidy
