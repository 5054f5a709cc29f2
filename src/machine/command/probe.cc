#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "machine/command/paths.h"
#include "machine/command/reader.h"
#include "machine/command/shell_text.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMaxText = 256 << 10, kMaxTextOfAll = 1 << 20, kMaxHashed = 4 << 20;
constexpr size_t kMaxLaunches = 32, kMaxOutputs = 32, kMaxFiles = 32, kMaxPaths = 128;
constexpr int kMaxDepth = 4;  // scripts that start scripts

std::string folder_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool trains(const LaunchLine& launch) { return !launch.launcher.empty() && launch.launcher != "shell"; }

std::string first_line(const std::string& text) { return text.substr(0, std::min(text.find('\n'), size_t{256})); }

// A file started by its own name: what its first line or its name says it is.
std::string kind_of(const std::string& path, const std::string& text) {
  std::string line = first_line(text);
  if (line.starts_with("#!")) {
    if (line.find("python") != std::string::npos) return "script";
    if (line.find("sh") != std::string::npos) return "shell";
  }
  if (path.ends_with(".py")) return "script";
  if (path.ends_with(".sh") || path.ends_with(".bash") || line.starts_with("#")) return "shell";
  return "";
}

// Of a program: piece by piece, since its bytes are of no other use.
base::Result<std::string> hash_of(const std::string& path) {
  os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::system_error("open", path);
  base::Sha256 hash;
  char buffer[32 << 10];
  for (size_t total = 0;;) {
    os::IoStep step = os::read_step(file.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) return hash.hex();
    if (step.kind != os::IoStep::kBytes) return base::system_error("read", path, step.error_number);
    if ((total += step.bytes) > kMaxHashed) return base::fail(base::ErrorKind::kConfig, fmt::format("{} is larger than 4 MiB", path));
    hash.update(std::string_view(buffer, step.bytes));
  }
}

}  // namespace

CommandReader::CommandReader(const ProbeRequest& request) : request_(request) {
  auto found = request.environment.find("HOME");
  if (found != request.environment.end()) home_ = found->second;
}

bool CommandReader::exists(const std::string& path) const { return os::exists(request_.root + path); }
std::string CommandReader::absolute(const std::string& value, const std::string& directory) const {
  return absolute_path(value, directory, home_);
}

const std::string* CommandReader::file(const std::string& path, const std::string& role, const std::string& named_by) {
  if (facts_.files.size() >= kMaxFiles) return nullptr;
  for (const CommandFile& known : facts_.files)
    if (known.path == path) return nullptr;
  CommandFile f;
  f.path = path;
  f.role = role;
  f.named_by = named_by;
  std::string text;
  struct stat s{};
  if (::stat((request_.root + path).c_str(), &s) != 0) {
    f.error = base::system_error("stat", path).message;
  } else if (f.exists = true, !S_ISREG(s.st_mode)) {
    f.error = S_ISDIR(s.st_mode) ? "is a folder" : "is no regular file";
  } else {
    f.size = s.st_size;
    bool program = s.st_size > static_cast<int64_t>(kMaxText);  // not read as a text
    base::Result<std::string> content = program ? base::Result<std::string>("") : os::read_file(request_.root + path, kMaxText);
    if (program) {
      base::Result<std::string> hash = hash_of(request_.root + path);
      f.error = hash.ok() ? "larger than 256 KiB" : hash.error().message;
      if (hash.ok()) f.sha256 = *hash;
    } else if (!content.ok()) {
      f.error = content.error().message;
    } else {
      f.sha256 = base::sha256_hex(*content);
      if (text_bytes_ + content->size() > kMaxTextOfAll) f.error = "the command's files are larger than 1 MiB together";
      else text = std::move(content).value();
    }
  }
  text_bytes_ += text.size();
  facts_.files.push_back(std::move(f));
  texts_.push_back(std::move(text));
  return texts_.back().empty() ? nullptr : &texts_.back();
}

void CommandReader::path(const std::string& key, const std::string& value, const std::string& role, const std::string& named_by,
                         const std::string& directory) {
  if (role.empty() || facts_.paths.size() >= kMaxPaths || !looks_like_path(value)) return;
  std::string whole = absolute(value, directory);
  const bool relative_name = value[0] != '/' && value[0] != '.' && value[0] != '~';
  if (relative_name && takes_hub_id(key) && std::count(value.begin(), value.end(), '/') <= 1 && !exists(whole)) return;
  for (const NamedPath& known : facts_.paths)
    if (known.path == whole) return;
  facts_.paths.push_back({whole, role, named_by});
}

void CommandReader::words(const std::vector<std::string>& argv, const std::string& directory, const std::string& file_name, int64_t line,
                          const std::map<std::string, std::string>& exported, bool background, int depth) {
  Understood understood = read_launch(argv);
  LaunchLine& launch = understood.line;
  if (launch.launcher.empty() || facts_.launches.size() >= kMaxLaunches) return;
  launch.file = file_name;
  launch.line = line;
  launch.directory = directory;
  launch.background = background;
  for (const auto& [name, value] : exported)
    if (!secret_name(name)) launch.variables.emplace(name, value);
  facts_.launches.push_back(launch);
  if (!understood.inline_script.empty()) return shell_script(understood.inline_script, file_name, launch, depth + 1);
  if (trains(launch)) facts_.launcher = launch.launcher;
  launcher_options(launch);
  program(launch, depth);
  arguments(launch);
}

void CommandReader::program(const LaunchLine& launch, int depth) {
  if (launch.program.empty() || launch.program.find('$') != std::string::npos || depth > kMaxDepth) return;
  std::string named_by = launch.file.empty() ? "the command" : "line " + std::to_string(launch.line) + " of " + launch.file;
  std::string whole = absolute(launch.program, launch.directory);
  if (launch.module) return module(launch);
  if (launch.launcher == "llamafactory") return config(whole, "llamafactory", named_by, launch.directory);
  if (launch.launcher == "phalanx-train") return config(whole, "config", named_by, launch.directory);
  if (launch.launcher == "shell" || launch.launcher == "direct") {
    if (launch.launcher == "direct" && launch.program.find('/') == std::string::npos && !exists(whole)) return;
    const bool shell = launch.launcher == "shell";
    const size_t before = facts_.files.size();
    const std::string* text = file(whole, shell ? "shell" : "script", named_by);
    if (!text) return;
    std::string kind = shell ? "shell" : kind_of(whole, *text);
    if (kind.empty()) {  // a program, not ours to read
      facts_.files.resize(before);
      texts_.resize(before);
      return;
    }
    facts_.files.back().role = kind;
    if (kind == "shell") shell_script(std::string(*text), whole, launch, depth + 1);
    return;
  }
  file(whole, "script", named_by);
}

void CommandReader::module(const LaunchLine& launch) {
  std::string stem = absolute(base::replace_all(launch.program, ".", "/"), launch.directory);
  for (const std::string& candidate : {stem + ".py", stem + "/__main__.py"})
    if (exists(candidate)) {
      file(candidate, "script", "-m " + launch.program);
      return;
    }
}

void CommandReader::shell_script(const std::string& text, const std::string& path, const LaunchLine& launch, int depth) {
  if (depth > kMaxDepth) return;
  std::vector<std::string> positional = {launch.program};
  positional.insert(positional.end(), launch.arguments.begin(), launch.arguments.end());
  std::map<std::string, std::string> variables = launch.variables;
  if (!home_.empty()) variables.emplace("HOME", home_);
  variables["PWD"] = launch.directory;
  std::string directory = launch.directory;
  read_shell(text, positional, variables, [&](const ShellCommand& c, const std::map<std::string, std::string>& exported) {
    const std::string name = c.words.empty() ? "" : c.words[0];
    if (name == "cd" && c.words.size() == 2) {
      const std::string& to = c.words[1];
      if (to.find("dirname") != std::string::npos) directory = folder_of(path);
      else if (looks_like_path(to)) directory = absolute(to, directory);
      return;
    }
    if (name == "mkdir" && made_.size() < 256)
      for (const std::string& word : c.words)
        if (word != "mkdir" && looks_like_path(word)) made_.insert(absolute(word, directory));
    std::map<std::string, std::string> together = c.assignments;
    together.insert(exported.begin(), exported.end());
    size_t before = facts_.launches.size();
    if (!c.words.empty()) words(c.words, directory, path, c.line, together, c.background, depth);
    outputs(c.outputs, path, c.line, directory, facts_.launches.size() > before);
  });
}

void CommandReader::outputs(const std::vector<std::string>& targets, const std::string& file_name, int64_t line,
                            const std::string& directory, bool launches) {
  for (const std::string& target : targets) {
    if (facts_.outputs.size() >= kMaxOutputs || !looks_like_path(target)) continue;
    ShellOutput o;
    o.file = file_name;
    o.line = line;
    o.target = absolute(target, directory);
    o.launch = launches;
    if (o.target.starts_with("/dev/") || o.target.starts_with("/proc/")) continue;
    o.folder = folder_of(o.target);
    o.folder_exists = os::is_folder(request_.root + o.folder);
    for (const std::string& made : made_) o.folder_made = o.folder_made || made == o.folder || made.starts_with(o.folder + "/");
    facts_.outputs.push_back(std::move(o));
  }
}

void CommandReader::launcher_options(const LaunchLine& launch) {
  auto option = [&](const char* name) {
    auto found = launch.options.find(name);
    return found == launch.options.end() || !looks_like_path(found->second) ? "" : absolute(found->second, launch.directory);
  };
  if (launch.launcher == "accelerate") {
    if (std::string given = option("config_file"); !given.empty()) {
      config(given, "accelerate", "--config_file", launch.directory);
    } else {
      auto variable = [&](const char* name) {
        auto found = request_.environment.find(name);
        return found == request_.environment.end() ? "" : found->second;
      };
      std::string cache = variable("XDG_CACHE_HOME"), hub = variable("HF_HOME");
      if (hub.empty()) hub = (cache.empty() ? home_ + "/.cache" : cache) + "/huggingface";
      std::string standard = absolute(hub, "/") + "/accelerate/default_config.yaml";
      if (exists(standard)) config(standard, "accelerate", "accelerate's default configuration", launch.directory);
    }
    if (std::string given = option("deepspeed_config_file"); !given.empty())
      config(given, "deepspeed", "--deepspeed_config_file", launch.directory);
  }
  if (std::string given = option("hostfile"); !given.empty()) file(given, "hostfile", "--hostfile");
  if (std::string given = option("deepspeed_hostfile"); !given.empty()) file(given, "hostfile", "--deepspeed_hostfile");
  if (launch.launcher == "deepspeed" && !launch.options.count("hostfile") && exists("/job/hostfile"))
    file("/job/hostfile", "hostfile", "deepspeed's default");
}

void CommandReader::arguments(const LaunchLine& launch) {
  if (launch.launcher == "shell" || launch.launcher == "phalanx-train") return;
  bool first_word = true, lightning = false;
  for (const Argument& a : read_arguments(launch.arguments)) {
    if (!a.option) {
      if (first_word) lightning = a.value == "fit" || a.value == "validate" || a.value == "test" || a.value == "predict";
      const bool is_config = a.value.ends_with(".yaml") || a.value.ends_with(".yml");
      if (is_config && looks_like_path(a.value)) config(absolute(a.value, launch.directory), "config", "the command", launch.directory);
      first_word = false;
      continue;
    }
    if (secret_name(a.name) || !looks_like_path(a.value)) continue;
    const bool yaml_or_json = a.value.ends_with(".yaml") || a.value.ends_with(".yml") || a.value.ends_with(".json");
    const std::string option = (a.name.size() == 1 ? "-" : "--") + a.name;
    if (yaml_or_json && (a.name.find("deepspeed") != std::string::npos || a.name == "ds_config")) {
      config(absolute(a.value, launch.directory), "deepspeed", option, launch.directory);
    } else if (yaml_or_json && (a.name == "c" || a.name.find("config") != std::string::npos || a.name.find("cfg") != std::string::npos)) {
      config(absolute(a.value, launch.directory), lightning ? "lightning" : "config", option, launch.directory);
    } else {
      path(a.name, a.value, path_role(a.name), option, launch.directory);
    }
  }
}

CommandFacts CommandReader::read() {
  std::string directory = request_.directory;
  if (directory.empty()) directory = request_.root.empty() ? os::current_folder() : "/";
  words(request_.argv, directory, "", 0, {}, false, 0);
  for (size_t i = 0; i < facts_.files.size(); ++i) facts_.files[i].text = without_secrets(texts_[i], facts_.files[i].role == "script");
  for (const CommandFile& f : facts_.files)
    if (facts_.git_head.empty() && f.exists && (f.role == "script" || f.role == "shell"))
      facts_.git_head = git_head(request_.root, folder_of(f.path));
  return std::move(facts_);
}

CommandFacts read_command(const ProbeRequest& request) { return CommandReader(request).read(); }

}  // namespace phalanx::machine
