#include "envmove/environment.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envmove/packages.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;

constexpr size_t kMostSettingBytes = 64 << 10;
constexpr size_t kMostListBytes = 1 << 20;

// "home = /usr/bin" of pyvenv.cfg.
std::string setting(std::string_view text, std::string_view key) {
  for (std::string_view line : base::split_lines(text)) {
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos && base::trim(line.substr(0, equals)) == key)
      return std::string(base::trim(line.substr(equals + 1)));
  }
  return "";
}

uint64_t bytes_of(const std::vector<File>& files) {
  uint64_t total = 0;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const File& file : files) {
    if (file.is_link() || (file.stat.st_nlink > 1 && !seen.insert({file.stat.st_dev, file.stat.st_ino}).second)) continue;
    total += static_cast<uint64_t>(file.stat.st_size);
  }
  return total;
}

// From lib/python3.11, where no record names the version.
std::string version_of_folders(const std::vector<File>& files) {
  constexpr std::string_view kLib = "lib/python3.";
  for (const File& file : files) {
    if (!file.path.starts_with(kLib)) continue;
    const size_t end = file.path.find_first_not_of("0123456789", kLib.size());
    if (end != std::string::npos && end > kLib.size() && file.path[end] == '/') return file.path.substr(10, end - 10);
  }
  return "";
}

std::vector<std::string> folders_of_environments() {
  std::vector<std::string> all;
  const std::string home = os::environment_value("HOME");
  if (std::string root = os::environment_value("MAMBA_ROOT_PREFIX"); !root.empty()) all.push_back(root + "/envs");
  const std::string listed = os::environment_value("CONDA_ENVS_PATH");
  for (std::string_view one : base::split(listed, ':'))
    if (one.starts_with("/")) all.emplace_back(one);
  if (std::string program = os::environment_value("CONDA_EXE"); program.ends_with("/bin/conda"))
    all.push_back(program.substr(0, program.size() - std::string_view("/bin/conda").size()) + "/envs");
  if (std::string wrapper = os::environment_value("WORKON_HOME"); !wrapper.empty()) all.push_back(wrapper);
  if (home.empty()) return all;
  for (const char* name : {"miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda", ".local/share/mamba"})
    all.push_back(home + "/" + name + "/envs");
  all.push_back(home + "/.virtualenvs");
  all.push_back("/opt/conda/envs");
  return all;
}

std::vector<std::string> listed_by_conda() {
  std::vector<std::string> all;
  const std::string home = os::environment_value("HOME");
  auto text = os::read_if_present(home + "/.conda/environments.txt", kMostListBytes);
  if (home.empty() || !text.ok() || !*text) return all;
  for (std::string_view line : base::split_lines(**text))
    if (line.starts_with("/")) all.emplace_back(line);
  return all;
}

bool is_environment(const std::string& folder) { return os::is_folder(folder + "/conda-meta") || os::exists(folder + "/pyvenv.cfg"); }

std::string absolute(const std::string& path) {
  std::string whole = path.starts_with("/") ? path : os::current_folder() + "/" + path;
  std::vector<std::string> parts;
  for (std::string_view part : base::split(whole, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
      continue;
    }
    parts.emplace_back(part);
  }
  return "/" + base::join(parts, "/");
}

}  // namespace

const File* Environment::find(std::string_view path) const {
  auto at = std::lower_bound(files.begin(), files.end(), path, [](const File& file, std::string_view name) { return file.path < name; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

base::Result<Environment> read_environment(const std::string& typed) {
  Environment out;
  out.root = absolute(typed);
  TRY_ASSIGN(bool there, os::is_present_folder(out.root));
  if (!there) return base::fail(ErrorKind::kConfig, fmt::format("no such folder: {}", base::quote(out.root)));
  TRY_ASSIGN(bool conda, os::is_present_folder(out.root + "/conda-meta"));
  TRY_ASSIGN(std::optional<std::string> config, os::read_if_present(out.root + "/pyvenv.cfg", kMostSettingBytes));
  if (!conda && !config)
    return base::fail(ErrorKind::kConfig, fmt::format("{} is no environment of Python", base::quote(out.root)))
        .because("it has neither conda-meta/ nor pyvenv.cfg");
  out.kind = conda ? Kind::kConda : Kind::kVenv;
  out.folder = std::make_shared<const os::Fd>(::open(out.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out.folder->valid()) return base::system_error("open", out.root);
  TRY_ASSIGN(Tree tree, list_files(*out.folder, out.root));
  out.files = std::move(tree.files);
  if (const std::unique_ptr<char, decltype(&std::free)> real(::realpath(out.root.c_str(), nullptr), &std::free); real)
    out.foreign = first_foreign(real.get());
  if (out.foreign.empty() && !tree.foreign.empty()) out.foreign = out.root + "/" + tree.foreign;
  out.bytes = bytes_of(out.files);
  if (config) {
    out.base = setting(*config, "home");
    out.uses_packages_of_base = setting(*config, "include-system-site-packages") == "true";
    out.python = setting(*config, "version");
    if (out.python.empty()) out.python = setting(*config, "version_info");
  }
  read_packages(out);
  for (const Package& package : out.packages)
    if (package.conda && package.name == "python") out.python = package.version;
  if (out.python.empty()) out.python = version_of_folders(out.files);
  return out;
}

base::Result<std::string> find_environment(const std::string& word) {
  if (word.find('/') != std::string::npos || os::is_folder(word)) return word;
  std::vector<std::string> names;
  for (const std::string& path : listed_by_conda()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name == word && is_environment(path)) return path;
    if (is_environment(path)) names.push_back(name);
  }
  for (const std::string& folder : folders_of_environments()) {
    if (is_environment(folder + "/" + word)) return folder + "/" + word;
    auto found = os::names_if_present(folder);
    if (!found.ok() || !*found) continue;
    for (const std::string& name : **found)
      if (is_environment(folder + "/" + name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string hint = "phalanx env show PATH";
  if (std::optional<std::string> near = base::closest(word, names)) hint = "phalanx env show " + base::shell_quote(*near);
  else if (!names.empty()) hint = fmt::format("the environments found here: {}", base::join(names, ", "));
  return base::fail(ErrorKind::kUsage, fmt::format("no environment is named {}", base::quote(word))).with_hint(hint);
}

std::string minor_version(std::string_view version) {
  const std::vector<std::string_view> parts = base::split(version, '.');
  return parts.size() < 2 ? "" : fmt::format("{}.{}", parts[0], parts[1]);
}

std::string fingerprint(const Environment& environment) {
  std::vector<std::string> lines;
  for (const Package& package : environment.packages) lines.push_back(package.name + "=" + package.version);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return base::sha256_hex("python=" + environment.python + "\n" + base::join(lines, "\n"));
}

}  // namespace phalanx::envmove
