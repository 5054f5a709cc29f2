#include "os/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "os/fd.h"

namespace phalanx::os {
namespace {

// The interpreter named by "#!": its path, or empty if the file is not a script.
std::string script_interpreter(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return "";
  char head[256];
  ssize_t n = ::read(fd.get(), head, sizeof(head));
  if (n < 3 || head[0] != '#' || head[1] != '!') return "";
  std::string line(head + 2, static_cast<size_t>(n) - 2);
  line = line.substr(0, line.find('\n'));
  size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

base::Result<std::string> check_program(const std::string& file, const std::string& on_disk, bool* bad_first_line) {
  if (::access(on_disk.c_str(), X_OK) != 0) return base::system_error("execute", file);
  std::string interpreter = script_interpreter(on_disk);
  if (!interpreter.empty() && interpreter[0] == '/' && ::access(interpreter.c_str(), X_OK) != 0) {
    std::string shown = interpreter.back() == '\r' ? interpreter.substr(0, interpreter.size() - 1) + "\\r" : interpreter;
    if (bad_first_line) *bad_first_line = true;
    return base::fail(base::ErrorKind::kUnfit, fmt::format("{} starts with '#!{}', which cannot be executed", file, shown))
        .because("access " + shown + ": " + std::strerror(errno));
  }
  return file;
}

bool is_regular(const std::string& path) {
  Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return false;
  Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return !directory.valid();
}

}  // namespace

base::Result<std::string> find_program(const std::string& name, const std::string& path_variable, const std::string& directory,
                                       bool* bad_first_line) {
  auto absolute = [&](const std::string& p) { return p.empty() || p[0] == '/' || directory.empty() ? p : directory + "/" + p; };
  if (name.empty()) return base::fail(base::ErrorKind::kUnfit, "the command is empty");
  if (name.find('/') != std::string::npos) {
    if (!is_regular(absolute(name)))
      return base::fail(base::ErrorKind::kUnfit, fmt::format("{} cannot be executed", name))
          .because(fmt::format("no such file: {}", absolute(name)));
    base::Result<std::string> found = check_program(name, absolute(name), bad_first_line);
    if (!found.ok()) return std::move(found).error();
    return name;
  }
  size_t begin = 0;
  std::optional<base::Error> unusable;
  while (begin <= path_variable.size()) {
    size_t end = std::min(path_variable.find(':', begin), path_variable.size());
    std::string folder = path_variable.substr(begin, end - begin);
    std::string candidate = (folder.empty() ? std::string(".") : folder) + "/" + name;
    begin = end + 1;
    if (!is_regular(absolute(candidate))) continue;
    base::Result<std::string> found = check_program(candidate, absolute(candidate), unusable ? nullptr : bad_first_line);
    if (found.ok()) {
      if (bad_first_line) *bad_first_line = false;
      return found;
    }
    if (!unusable) unusable = std::move(found).error();
  }
  if (unusable) return *std::move(unusable);
  return base::fail(base::ErrorKind::kUnfit, fmt::format("'{}' was not found", name))
      .because(fmt::format("no such program in PATH={}", path_variable));
}

}  // namespace phalanx::os
