// Where the environment lies and what it searches. The order is that of Lib/site.py: a venv's own folder, the user site, the
// installation's folders; behind each folder the lines of its .pth files.
#include "machine/software/python_environment.h"

#include <algorithm>

#include "base/text.h"
#include "machine/software/elf_reader.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostSiteFolders = 256;
constexpr size_t kMostPthFiles = 512;
constexpr size_t kMostText = 256 << 10;

std::string variable(const ProbeRequest& request, const std::string& name) {
  auto found = request.environment.find(name);
  return found == request.environment.end() ? "" : found->second;
}

// "key = value" lines of pyvenv.cfg; keys in any case.
std::string venv_value(std::string_view text, std::string_view wanted) {
  for (std::string_view line : base::split_lines(text)) {
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || base::to_lower(base::trim(line.substr(0, equals))) != wanted) continue;
    return std::string(base::trim(line.substr(equals + 1)));
  }
  return "";
}

// "3.11" of the newest lib/python3.* with a standard library in it, or with site-packages (a venv has no more).
std::string minor_under(const Rooted& files, const std::string& prefix) {
  std::string best;
  for (const std::string& name : files.list(prefix + "/lib", 8192)) {
    if (!name.starts_with("python") || name.size() < 9 || name.find_first_not_of("0123456789.", 6) != std::string::npos) continue;
    std::string folder = prefix + "/lib/" + name;
    if (!files.exists(folder + "/os.py") && !files.is_folder(folder + "/site-packages")) continue;
    if (version_less(best, name.substr(6))) best = name.substr(6);
  }
  return best;
}

std::string minor_of_name(std::string_view interpreter) {
  std::string_view name = name_of(interpreter);
  size_t digit = name.find_first_of("0123456789");
  if (digit == std::string_view::npos) return "";
  std::string_view number = name.substr(digit, name.find_first_not_of("0123456789.", digit) - digit);
  return number.find('.') == std::string_view::npos ? "" : std::string(number);
}

// Up from the real interpreter until lib/pythonX.Y/os.py stands there.
std::string base_of(const Rooted& files, const std::string& interpreter, const std::string& minor) {
  std::string folder(folder_of(interpreter));
  for (int i = 0; i < 8 && folder.size() > 1; ++i) {
    folder = folder_of(folder);
    std::string lib = folder == "/" ? "/lib" : folder + "/lib";
    if (files.exists(lib + "/python" + minor + "/os.py")) return folder;
  }
  return std::string(folder_of(folder_of(interpreter)));
}

class SitePath {
 public:
  SitePath(const Rooted& files, std::vector<std::string>& out) : files_(files), out_(out) {}
  void add_plain(const std::string& folder) {
    if (out_.size() < kMostSiteFolders && std::find(out_.begin(), out_.end(), folder) == out_.end() && files_.exists(folder))
      out_.push_back(folder);
  }
  // A site folder: its own place, then the lines of its .pth files.
  bool add_site(const std::string& folder) {
    if (std::find(out_.begin(), out_.end(), folder) != out_.end() || !files_.is_folder(folder)) return false;
    add_plain(folder);
    size_t read = 0;
    for (const std::string& name : files_.list(folder, 20'000)) {
      if (!name.ends_with(".pth") || name.starts_with(".") || ++read > kMostPthFiles) continue;
      std::optional<std::string> text = files_.read(folder + "/" + name, kMostText);
      if (!text) continue;
      for (std::string_view line : base::split_lines(*text)) {
        line = base::trim(line);
        if (line.empty() || line[0] == '#' || line.starts_with("import ") || line.starts_with("import\t") || line.size() > 4096) continue;
        add_plain(absolute_path(line, folder));
      }
    }
    return true;
  }
  // lib64 only where it is a folder of its own, as on Fedora.
  void add_libs(const std::string& prefix, const std::string& minor) {
    std::string lib = prefix + "/lib", lib64 = prefix + "/lib64", rest = "/python" + minor + "/site-packages";
    if (files_.resolve(lib64) != files_.resolve(lib)) add_site(lib64 + rest);
    add_site(lib + rest);
  }

 private:
  const Rooted& files_;
  std::vector<std::string>& out_;
};

void add_global_sites(const Rooted& files, SitePath& sites, const std::string& base, const std::string& minor) {
  std::string at = base == "/" ? "" : base;
  bool debian = files.is_folder(at + "/lib/python3/dist-packages") && (base == "/usr" || base == "/");
  if (debian) {
    sites.add_site("/usr/local/lib/python" + minor + "/dist-packages");
    sites.add_site(at + "/lib/python3/dist-packages");
    sites.add_site(at + "/lib/python" + minor + "/dist-packages");
    return;
  }
  if (base == "/usr") sites.add_libs("/usr/local", minor);
  sites.add_libs(at, minor);
}

void find_sites(const Rooted& files, const ProbeRequest& request, PythonEnvironment& env, const std::string& minor, bool own_only,
                std::string_view flags) {
  SitePath sites(files, env.site_packages);
  bool isolated = flags.find('I') != std::string_view::npos;
  bool no_variables = isolated || flags.find('E') != std::string_view::npos;
  std::string python_path = no_variables ? "" : variable(request, "PYTHONPATH");
  if (!python_path.empty())
    for (std::string_view folder : base::split(python_path, ':'))
      if (!folder.empty()) sites.add_plain(absolute_path(folder, request.directory));
  if (env.kind == "venv") sites.add_libs(env.prefix, minor);
  bool no_user = isolated || own_only || flags.find('s') != std::string_view::npos ||
                 (!no_variables && !variable(request, "PYTHONNOUSERSITE").empty());
  if (!no_user) {
    std::string user_base = no_variables ? "" : variable(request, "PYTHONUSERBASE");
    std::string home = variable(request, "HOME");
    if (user_base.empty() && !home.empty()) user_base = home + "/.local";
    std::string user_site = user_base + "/lib/python" + minor + "/site-packages";
    if (!user_base.empty() && sites.add_site(plain_path(user_site))) env.user_site = plain_path(user_site);
  }
  if (env.kind != "venv" || !own_only) add_global_sites(files, sites, env.base_prefix, minor);
}

}  // namespace

PythonEnvironment find_python_environment(const Rooted& files, const ProbeRequest& request) {
  PythonEnvironment env;
  BareCommand command = find_bare_command(files, request);
  env.program = command.program;
  env.program_error = command.error;
  env.bad_first_line = command.bad_first_line;
  std::string flags;
  std::string started = interpreter_of(files, request, command.program, command.path, flags);
  if (started.empty() && !command.program.empty() && command.error.empty()) {
    std::optional<std::string> head = files.read(command.program, 2);
    std::string name(name_of(command.program));
    bool shell = name == "sh" || name == "bash" || name == "dash" || name == "zsh" || (head && *head == "#!");
    if (!shell) return env;  // a compiled program
  }
  if (started.empty() && command.error.empty()) {
    env.assumed = true;
    for (const char* name : {"python", "python3"})
      if (std::string file = find_in_path(files, name, command.path, request.directory); started.empty())
        started = interpreter_of(files, request, file, command.path, flags);
  }
  if (started.empty() && !command.program.empty() && !command.error.empty()) {  // a script with a bad first line: its folder's Python
    env.assumed = true;
    for (const char* name : {"/python", "/python3"}) {
      std::string beside = std::string(folder_of(command.program)) + name;
      if (started.empty() && files.is_program(beside)) started = beside;
    }
  }
  if (started.empty()) return env;
  for (size_t i = 1; i < command.words.size() && is_python_name(command.words[0]) && command.words[i].size() > 1; ++i) {
    if (command.words[i][0] != '-' || command.words[i] == "-m" || command.words[i] == "-c") break;
    if (command.words[i][1] != '-') flags += command.words[i];
  }
  env.interpreter = files.resolve(started);
  std::string prefix(folder_of(folder_of(started)));
  std::optional<std::string> venv = files.read(prefix + "/pyvenv.cfg", 16 << 10);
  std::string minor = minor_of_name(env.interpreter);
  bool own_only = false;
  if (venv) {
    env.kind = "venv";
    env.prefix = prefix;
    own_only = base::to_lower(venv_value(*venv, "include-system-site-packages")) != "true";
    if (minor.empty()) minor = minor_under(files, prefix);
  }
  if (minor.empty()) minor = minor_under(files, std::string(folder_of(folder_of(env.interpreter))));
  env.base_prefix = base_of(files, env.interpreter, minor);
  if (!venv) {
    env.prefix = env.base_prefix;
    bool conda = files.is_folder(env.prefix + "/conda-meta");
    env.kind = conda ? "conda" : env.prefix == "/usr" || env.prefix == "/usr/local" || env.prefix == "/" ? "system" : "";
  }
  env.version = python_version(files, env.interpreter, env.base_prefix, minor);
  find_sites(files, request, env, minor, own_only, flags);
  return env;
}

}  // namespace phalanx::machine
