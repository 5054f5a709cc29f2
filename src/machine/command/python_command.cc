// From the words of a command to the Python it runs.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/software/elf_reader.h"
#include "machine/software/python_environment.h"
#include "os/program.h"

namespace phalanx::machine {
namespace {

constexpr int kMostHops = 8;  // wrappers around wrappers, scripts run by scripts

// Programs that start another one: which of their options take a word of their own, and how many words come before the command.
struct Wrapper {
  std::string_view name;
  std::string_view with_word;  // blanks around each: " -n --adjustment "
  size_t words_before;
};
constexpr Wrapper kWrappers[] = {
    {"nice", " -n --adjustment ", 0},
    {"ionice", " -c -n -p ", 0},
    {"nohup", "", 0},
    {"setsid", "", 0},
    {"time", " -f -o ", 0},
    {"stdbuf", " -i -o -e ", 0},
    {"timeout", " -s -k --signal --kill-after ", 1},
    {"numactl", " -N -m -C -i -p -l --cpunodebind --membind --physcpubind --interleave --preferred ", 0},
    {"taskset", "", 1},
    {"chrt", "", 1},
    {"exec", "", 0},
};

std::string variable(const ProbeRequest& request, const std::string& name) {
  auto found = request.environment.find(name);
  return found == request.environment.end() ? "" : found->second;
}

bool is_assignment(std::string_view word) {
  size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 && word[0] != '-' && word.substr(0, equals).find('/') == std::string_view::npos;
}

// Drops `n` words and then options (with their own words) from the front.
void drop_options(std::vector<std::string>& words, std::string_view with_word) {
  size_t i = 1;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-') {
    bool end = words[i] == "--";
    i += with_word.find(" " + words[i] + " ") != std::string_view::npos ? 2 : 1;
    if (end) break;
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())));
}

// One wrapper off the front of the words; false: the first word is the program.
bool unwrap(std::vector<std::string>& words, std::string& path, const ProbeRequest& request) {
  if (words.empty()) return false;
  std::string name(name_of(words[0]));
  if (name == "env") {
    drop_options(words, " -u -C --unset --chdir ");
    while (!words.empty() && is_assignment(words[0])) {
      if (words[0].starts_with("PATH=")) path = words[0].substr(5);
      words.erase(words.begin());
    }
    return true;
  }
  if (name == "conda" || name == "mamba" || name == "micromamba") {
    if (words.size() < 2 || words[1] != "run") return false;
    for (size_t i = 2; i + 1 < words.size(); ++i)
      if (words[i] == "-p" || words[i] == "--prefix") path = words[i + 1] + "/bin:" + path;
    for (size_t i = 2; i + 1 < words.size() && words[i][0] == '-'; ++i)
      if (words[i] == "-n" || words[i] == "--name") {
        std::string base(folder_of(folder_of(variable(request, "CONDA_EXE"))));
        if (!base.empty()) path = base + "/envs/" + words[i + 1] + "/bin:" + path;
      }
    words.erase(words.begin());
    drop_options(words, " -n --name -p --prefix --cwd ");
    return true;
  }
  for (const Wrapper& wrapper : kWrappers) {
    if (name != wrapper.name) continue;
    drop_options(words, wrapper.with_word);
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(wrapper.words_before, words.size())));
    return true;
  }
  return false;
}

// The first line's words behind "#!"; a "'''exec'" form (made by pip and conda for long prefixes) gives the words of its second line.
std::vector<std::string> shebang_words(const Rooted& files, const std::string& script) {
  std::vector<std::string> words;
  std::optional<std::string> head = files.read(script, 1024);
  if (!head || !head->starts_with("#!")) return words;
  std::vector<std::string_view> lines = base::split_lines(*head);
  if (lines.size() > 1 && lines[1].starts_with("'''exec' ")) {
    std::string_view rest = base::trim(lines[1].substr(9));
    if (rest.starts_with('"')) {
      size_t end = rest.find('"', 1);
      words.emplace_back(rest.substr(1, end == std::string_view::npos ? end : end - 1));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
    for (std::string_view word : base::split_words(rest)) words.emplace_back(word);
    return words;
  }
  for (std::string_view word : base::split_words(std::string_view(lines[0]).substr(2))) words.emplace_back(word);
  return words;
}

std::string pyenv_version(const Rooted& files, const ProbeRequest& request, const std::string& pyenv_root) {
  std::string named = variable(request, "PYENV_VERSION");
  if (!named.empty()) return named;
  std::string folder = request.directory;
  for (int i = 0; i < 64 && !folder.empty(); ++i) {
    if (std::optional<std::string> text = files.read(folder + "/.python-version", 4096)) return std::string(base::trim(*text));
    if (folder == "/") break;
    folder = folder_of(folder);
  }
  std::optional<std::string> text = files.read(pyenv_root + "/version", 4096);
  return text ? std::string(base::trim(*text)) : "system";
}

}  // namespace

bool is_python_name(std::string_view file) {
  std::string_view name = name_of(file);
  for (std::string_view stem : {"python", "pypy"})
    if (name.starts_with(stem)) return name.substr(stem.size()).find_first_not_of("0123456789.tdm") == std::string_view::npos;
  return false;
}

std::string find_in_path(const Rooted& files, std::string_view name, std::string_view path, const std::string& directory) {
  if (name.empty()) return "";
  if (name.find('/') != std::string_view::npos) {
    std::string file = absolute_path(name, directory);
    return files.is_program(file) ? file : "";
  }
  for (std::string_view folder : base::split(path, ':')) {
    std::string file = absolute_path(std::string(folder.empty() ? "." : folder) + "/" + std::string(name), directory);
    if (files.is_program(file)) return file;
  }
  return "";
}

BareCommand find_bare_command(const Rooted& files, const ProbeRequest& request) {
  BareCommand bare;
  bare.words = request.argv;
  bare.path = variable(request, "PATH");
  for (int hop = 0; hop < kMostHops && unwrap(bare.words, bare.path, request); ++hop) continue;
  if (bare.words.empty()) return bare;
  bare.program = find_in_path(files, bare.words[0], bare.path, request.directory);
  if (!request.root.empty()) {
    if (bare.program.empty()) bare.error = fmt::format("'{}' was not found in PATH={}", bare.words[0], bare.path);
    return bare;
  }
  base::Result<std::string> found =
      os::find_program(bare.words[0], bare.path, request.directory, &bare.bad_first_line);  // as the agent will
  if (found.ok()) bare.program = absolute_path(*found, request.directory);
  else bare.error = found.error().message + (found.error().cause.empty() ? "" : ": " + found.error().cause);
  return bare;
}

std::string pyenv_target(const Rooted& files, const ProbeRequest& request, const std::string& shim) {
  size_t at = shim.rfind("/shims/");
  if (at == std::string::npos) return "";
  std::optional<std::string> text = files.read(shim, 4096);
  if (!text || text->find("pyenv") == std::string::npos) return "";
  std::string root = shim.substr(0, at), name = shim.substr(at + 7);
  std::vector<std::string> installed = files.list(root + "/versions", 256);
  std::string versions = base::replace_all(pyenv_version(files, request, root), ":", " ");
  for (std::string_view wanted : base::split_words(versions)) {
    std::string best;
    for (const std::string& version : installed) {
      bool same = version == wanted || version.starts_with(std::string(wanted) + ".");
      if (same && files.is_program(root + "/versions/" + version + "/bin/" + name) && (best.empty() || version_less(best, version)))
        best = version;
    }
    if (!best.empty()) return root + "/versions/" + best + "/bin/" + name;
  }
  std::string path = variable(request, "PATH"), rest;  // "system": the next one in PATH
  for (std::string_view folder : base::split(path, ':'))
    if (!folder.ends_with("/shims")) rest.append(rest.empty() ? "" : ":").append(folder);
  return find_in_path(files, name, rest, request.directory);
}

std::string interpreter_of(const Rooted& files, const ProbeRequest& request, const std::string& program, const std::string& path,
                           std::string& flags) {
  std::string file = program;
  for (int hop = 0; hop < kMostHops && !file.empty(); ++hop) {
    if (std::string target = pyenv_target(files, request, file); !target.empty() && target != file) {
      file = target;
      continue;
    }
    std::vector<std::string> words = shebang_words(files, file);
    if (words.empty()) return is_python_name(file) || is_python_name(files.resolve(file)) ? file : "";
    std::string found_path = path;
    for (int i = 0; i < kMostHops && unwrap(words, found_path, request); ++i) continue;
    if (words.empty()) return "";
    std::string next = find_in_path(files, words[0], found_path, request.directory);
    if (!is_python_name(words[0]) && !is_python_name(next)) return "";
    for (size_t i = 1; i < words.size() && words[i].starts_with('-'); ++i) flags += words[i];
    file = std::move(next);
  }
  return "";
}

}  // namespace phalanx::machine
