#include "diagnosis/logs/traceback.h"

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

constexpr int kMostLines = 600;
constexpr size_t kFrameBytes = 200;

// "RuntimeError: …", "torch.cuda.OutOfMemoryError: …", "KeyboardInterrupt".
bool names_an_exception(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && end < 120) {
    char c = line[end];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (!word) break;
    ++end;
  }
  if (end == 0 || (end < line.size() && line[end] != ':')) return false;
  std::string_view name = line.substr(0, end);
  if (size_t dot = name.rfind('.'); dot != name.npos) name.remove_prefix(dot + 1);
  if (name.empty() || name[0] < 'A' || name[0] > 'Z') return false;
  for (char c : name)
    if (c >= 'a' && c <= 'z') return true;  // "WARNING:" is no exception
  return false;
}

}  // namespace

void Traceback::add_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"";
  size_t begin = line.find(kFile);
  if (begin == line.npos || begin > 8) return;
  std::string_view rest = line.substr(begin + kFile.size());
  size_t quote = rest.find("\", line ");
  if (quote == rest.npos) return;
  std::string_view path = rest.substr(0, quote), tail = rest.substr(quote + 8);
  size_t digits = tail.find_first_not_of("0123456789");
  std::string_view number = tail.substr(0, digits), function;
  if (size_t in = tail.find("in "); in != tail.npos) function = tail.substr(in + 3);
  if (path.size() > kFrameBytes || number.size() > 9 || function.size() > kFrameBytes) return;
  std::string_view name = path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
  innermost_ = function.empty() ? fmt::format("{}:{}", name, number) : fmt::format("{}:{} ({})", name, number, base::trim(function));
  size_t packages = path.rfind("-packages/");
  module_ = packages == path.npos ? "" : std::string(path.substr(packages + std::string_view("-packages/").size()));
  bool installed = path.find("site-packages") != path.npos || path.find("dist-packages") != path.npos ||
                   path.find("/lib/python") != path.npos || path.starts_with('<');
  if (!installed) own_ = innermost_;
}

Traceback::State Traceback::add(std::string_view line) {
  if (++lines_ > kMostLines) return State::kLost;
  if (line.empty() || base::is_blank(line[0])) {
    add_frame(line);
    return State::kInside;
  }
  return names_an_exception(line) ? State::kEnd : State::kInside;
}

}  // namespace phalanx::diagnosis
