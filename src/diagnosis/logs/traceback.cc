#include "diagnosis/logs/traceback.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

constexpr int kMostLines = 600;
constexpr size_t kFrameBytes = 200;
constexpr size_t kCodeBytes = 160;
constexpr size_t kMostIndent = 40;
constexpr size_t kWayBytes = 1500;

size_t blanks_before(std::string_view line) {
  size_t count = 0;
  while (count < line.size() && base::is_blank(line[count])) ++count;
  return count;
}

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

// As the names of exceptions are: where the head is lost, "Loss: 0.3" below some frames shall not pass for one.
bool sounds_like_one(std::string_view line) {
  static constexpr std::array<std::string_view, 7> kParts = {"Error", "Exception", "Interrupt", "Exit", "Timeout", "Expired", "Failure"};
  std::string_view name = line.substr(0, line.find(':'));
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) { return name.find(part) != name.npos; });
}

constexpr std::string_view kFile = "File \"";

}  // namespace

bool is_exception_line(std::string_view line) { return names_an_exception(line) && sounds_like_one(line); }

std::optional<size_t> frame_indent(std::string_view line) {
  size_t indent = blanks_before(line);
  if (indent < 2 || indent > kMostIndent || !line.substr(indent).starts_with(kFile)) return std::nullopt;
  size_t mark = line.find(kFrameMark);
  if (mark == line.npos) return std::nullopt;
  std::string_view rest = line.substr(mark + kFrameMark.size());
  size_t digits = rest.find_first_not_of("0123456789");
  // faulthandler's frames have no comma; they end in no exception.
  return digits != 0 && digits != rest.npos && rest.substr(digits).starts_with(", in ") ? std::optional(indent) : std::nullopt;
}

Traceback::Traceback(uint64_t first_line, bool ignored, std::string_view head)
    : first_line_(first_line), ignored_(ignored), indent_(blanks_before(head)) {}

Traceback Traceback::without_head(size_t frame_indent) {
  Traceback cut(0, false, {});
  cut.indent_ = frame_indent - 2;
  cut.headless_ = true;
  return cut;
}

bool Traceback::add_frame(std::string_view line) {
  size_t begin = line.find(kFile);
  if (begin == line.npos || begin > 8) return false;
  std::string_view rest = line.substr(begin + kFile.size());
  size_t quote = rest.find(kFrameMark);
  if (quote == rest.npos) return false;
  std::string_view path = rest.substr(0, quote), tail = rest.substr(quote + 8);
  size_t digits = tail.find_first_not_of("0123456789");
  std::string_view number = tail.substr(0, digits), function;
  if (size_t in = tail.find("in "); in != tail.npos) function = tail.substr(in + 3);
  if (path.size() > kFrameBytes || number.size() > 9 || function.size() > kFrameBytes) return false;
  std::string_view name = path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
  innermost_ = function.empty() ? fmt::format("{}:{}", name, number) : fmt::format("{}:{} ({})", name, number, base::trim(function));
  size_t folder = path.rfind('/', path.size() - std::min(path.size(), name.size() + 2));
  way_ += fmt::format("{}({}) ", path.substr(folder == path.npos ? 0 : folder + 1), base::trim(function));
  if (way_.size() > kWayBytes) way_.erase(0, way_.size() - kWayBytes);
  size_t packages = path.rfind("-packages/");
  module_ = packages == path.npos ? "" : std::string(path.substr(packages + std::string_view("-packages/").size()));
  bool installed = path.find("site-packages") != path.npos || path.find("dist-packages") != path.npos ||
                   path.find("/lib/python") != path.npos || path.starts_with('<');
  if (!installed) own_ = innermost_;
  innermost_code_.clear();
  if (!installed) own_code_.clear();
  code_follows_ = true;
  own_code_follows_ = !installed;
  return true;
}

void Traceback::add_code(std::string_view line) {
  if (!std::exchange(code_follows_, false)) return;
  std::string code(base::trim(line).substr(0, kCodeBytes));
  if (own_code_follows_) own_code_ = code;
  innermost_code_ = std::move(code);
}

Traceback::State Traceback::add(std::string_view line) {
  if (++lines_ > kMostLines) return State::kLost;
  line.remove_prefix(std::min(indent_, blanks_before(line)));
  if (line.empty() || base::is_blank(line[0])) {
    if (!add_frame(line)) add_code(line);
    return State::kInside;
  }
  bool named = names_an_exception(line);
  if (headless_ && !(named && sounds_like_one(line))) return State::kLost;
  return named ? State::kEnd : State::kInside;
}

}  // namespace phalanx::diagnosis
