#include "machine/rooted.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "base/text.h"
#include "os/fd.h"

namespace phalanx::machine {
namespace {

constexpr int kMostLinks = 40;  // as Linux

void push_words(std::deque<std::string>& todo, std::string_view path) {
  std::vector<std::string_view> words = base::split(path, '/');
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    if (!word->empty() && *word != ".") todo.emplace_front(*word);
}

}  // namespace

std::string_view folder_of(std::string_view path) {
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string plain_path(std::string_view path) {
  std::vector<std::string_view> kept;
  for (std::string_view word : base::split(path, '/')) {
    if (word.empty() || word == ".") continue;
    if (word != "..") kept.push_back(word);
    else if (!kept.empty()) kept.pop_back();
  }
  std::string plain;
  for (std::string_view word : kept) plain.append("/").append(word);
  return plain.empty() ? "/" : plain;
}

std::string absolute_path(std::string_view path, std::string_view folder) {
  if (!path.empty() && path[0] == '/') return plain_path(path);
  return plain_path(std::string(folder) + "/" + std::string(path));
}

Rooted::Rooted(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::string Rooted::resolve(const std::string& path) const {
  if (path.empty() || path[0] != '/' || path.size() >= PATH_MAX || path.find('\0') != std::string::npos) return "";
  char buffer[PATH_MAX];
  if (root_.empty()) return ::realpath(path.c_str(), buffer) ? buffer : "";
  std::deque<std::string> todo;
  push_words(todo, path);
  std::string at;
  int links = 0;
  while (!todo.empty()) {
    std::string word = std::move(todo.front());
    todo.pop_front();
    if (word == "..") {
      at = at.substr(0, at.find_last_of('/') == std::string::npos ? 0 : at.find_last_of('/'));
      continue;
    }
    std::string next = at + "/" + word;
    struct stat info;
    if (next.size() >= PATH_MAX || ::lstat((root_ + next).c_str(), &info) != 0) return "";
    if (!S_ISLNK(info.st_mode)) {
      at = std::move(next);
      continue;
    }
    ssize_t n = ::readlink((root_ + next).c_str(), buffer, sizeof(buffer));
    if (n <= 0 || ++links > kMostLinks) return "";
    std::string_view target(buffer, static_cast<size_t>(n));
    if (target[0] == '/') at.clear();
    push_words(todo, target);
  }
  return at.empty() ? "/" : at;
}

std::string Rooted::on_disk(const std::string& path) const {
  if (root_.empty()) return path;
  std::string real = resolve(path);
  return root_ + (real.empty() ? path : real);
}

bool Rooted::exists(const std::string& path) const { return root_.empty() ? ::access(path.c_str(), F_OK) == 0 : !resolve(path).empty(); }

bool Rooted::is_file(const std::string& path) const {
  struct stat info;
  return ::stat(on_disk(path).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool Rooted::is_folder(const std::string& path) const {
  struct stat info;
  return ::stat(on_disk(path).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool Rooted::is_program(const std::string& path) const { return is_file(path) && ::access(on_disk(path).c_str(), X_OK) == 0; }

int64_t Rooted::size(const std::string& path) const {
  struct stat info;
  return ::stat(on_disk(path).c_str(), &info) == 0 ? info.st_size : -1;
}

std::optional<std::string> Rooted::read(const std::string& path, size_t max_bytes) const {
  os::Fd fd(::open(on_disk(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string text;
  char buffer[16384];
  while (text.size() < max_bytes) {
    ssize_t n = ::read(fd.get(), buffer, std::min(sizeof(buffer), max_bytes - text.size()));
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (static_cast<size_t>(n) < sizeof(buffer) && info.st_size > 0 && text.size() >= static_cast<size_t>(info.st_size)) break;
  }
  return text;
}

std::vector<std::string> Rooted::list(const std::string& path, size_t max_names) const {
  std::vector<std::string> names;
  DIR* folder = ::opendir(on_disk(path).c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() >= max_names) break;
    names.emplace_back(name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace phalanx::machine
