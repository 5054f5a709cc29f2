#include "machine/command/launch_line.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "base/text.h"

namespace phalanx::machine {
namespace {

using Words = std::span<const std::string>;

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string option_name(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  return base::replace_all(word.substr(0, word.find('=')), "-", "_");
}

bool is_assignment(const std::string& word) {
  size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || std::isdigit(static_cast<unsigned char>(word[0]))) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Takes options off the front; those in `with_value` take the next word along.
Words skip_options(Words words, std::initializer_list<std::string_view> with_value) {
  while (!words.empty() && words[0].size() > 1 && words[0][0] == '-') {
    bool value = one_of(words[0], with_value);
    words = words.subspan(std::min<size_t>(value ? 2 : 1, words.size()));
  }
  return words;
}

void keep_variable(LaunchLine& line, const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (!secret_name(name)) line.variables[name] = word.substr(name.size() + 1);
}

Words skip_wrappers(Words words, LaunchLine& line) {
  for (int rounds = 0; rounds < 16 && !words.empty(); ++rounds) {
    if (is_assignment(words[0])) {
      keep_variable(line, words[0]);
      words = words.subspan(1);
      continue;
    }
    std::string name = base_name(words[0]);
    if (one_of(name, {"nohup", "exec", "time", "setsid", "command", "builtin", "unbuffer", "catchsegv"})) {
      words = skip_options(words.subspan(1), {});
    } else if (name == "env") {
      words = skip_options(words.subspan(1), {"-u", "-C"});
      while (!words.empty() && is_assignment(words[0])) keep_variable(line, words[0]), words = words.subspan(1);
    } else if (one_of(name, {"nice", "ionice", "stdbuf", "numactl", "sudo", "chrt"})) {
      words = skip_options(words.subspan(1), {"-n", "-c", "-i", "-o", "-e", "-u", "-g", "-N", "-C", "-m"});
    } else if (name == "timeout" || name == "taskset") {
      words = skip_options(words.subspan(1), {"-k", "-s"});
      if (!words.empty()) words = words.subspan(1);
    } else if (one_of(name, {"conda", "mamba", "micromamba", "uv", "poetry", "pipenv"}) && words.size() > 1 && words[1] == "run") {
      words = skip_options(words.subspan(2), {"-n", "-p", "--name", "--prefix", "--with", "--python", "--project", "--cwd"});
    } else {
      break;
    }
  }
  return words;
}

constexpr std::string_view kTorchrunFlags = "standalone m module no_python run_path use_env h help";
constexpr std::string_view kAccelerateFlags =
    "cpu multi_gpu tpu use_deepspeed use_fsdp use_megatron_lm use_xpu use_parallelism_config quiet q module m no_python same_network "
    "debug dynamo_use_fullgraph dynamo_use_dynamic dynamo_use_regional_compilation enable_cpu_affinity no_tpu_cluster "
    "tpu_use_cluster tpu_use_sudo use_mps_device mps ipex h help";
constexpr std::string_view kDeepspeedFlags =
    "no_ssh no_local_rank no_python m module force_multi save_pid bind_cores_to_rank elastic_training no_ssh_check "
    "enable_each_rank_log h help";

// A launcher's own options, then the program and its arguments.
void read_options(Words words, LaunchLine& line, std::string_view flags) {
  size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    if (words[i] == "--") {
      ++i;
      break;
    }
    std::string name = option_name(words[i]);
    size_t equals = words[i].find('=');
    if (one_of(name, {"m", "module"})) line.module = true;
    if (equals != std::string::npos) line.options[name] = words[i].substr(equals + 1);
    else if (base::is_listed(name, flags) || i + 1 == words.size()) line.options[name] = "";
    else line.options[name] = words[++i];
  }
  if (i >= words.size()) return;
  line.program = words[i];
  line.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
}

void read_python(Words words, LaunchLine& line) {
  line.launcher = "python";
  for (; !words.empty() && words[0].size() > 1 && words[0][0] == '-'; words = words.subspan(1)) {
    const std::string& word = words[0];
    if (word == "-c") return;
    if (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") {
      if (words.size() > 1) words = words.subspan(1);
      continue;
    }
    if (word != "-m") continue;
    if (words.size() < 2) return;
    const std::string& module = words[1];
    Words rest = words.subspan(2);
    if (module == "torch.distributed.run" || module == "torch.distributed.launch") {
      line.launcher = module == "torch.distributed.run" ? "torchrun" : module;
      return read_options(rest, line, kTorchrunFlags);
    }
    if (module == "accelerate.commands.launch") {
      line.launcher = "accelerate";
      return read_options(rest, line, kAccelerateFlags);
    }
    if (one_of(module, {"deepspeed", "deepspeed.launcher.runner"})) {
      line.launcher = "deepspeed";
      return read_options(rest, line, kDeepspeedFlags);
    }
    if (module == "llamafactory.cli") line.launcher = "llamafactory";
    line.program = module;
    line.module = true;
    line.arguments.assign(rest.begin(), rest.end());
    return;
  }
  if (words.empty()) return;
  line.program = words[0];
  line.arguments.assign(words.begin() + 1, words.end());
}

void read_llamafactory(Words words, LaunchLine& line) {
  if (words.empty() || words[0] != "train") return;
  line.launcher = "llamafactory";
  if (words.size() > 1 && words[1][0] != '-') line.program = words[1];
  line.arguments.assign(words.begin() + (line.program.empty() ? 1 : 2), words.end());
}

void read_shell_start(Words words, Understood& out) {
  out.line.launcher = "shell";
  for (; !words.empty() && words[0].size() > 1 && (words[0][0] == '-' || words[0][0] == '+'); words = words.subspan(1)) {
    if (words[0][0] == '-' && words[0][1] != '-' && words[0].find('c') != std::string::npos) {
      if (words.size() > 1) out.inline_script = words[1];
      return;
    }
    if (words[0] == "-o" && words.size() > 1) words = words.subspan(1);
  }
  if (words.empty()) return;
  out.line.program = words[0];
  out.line.arguments.assign(words.begin() + 1, words.end());
}

bool is_python(const std::string& name) {
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

void cut_secrets(std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string& word = arguments[i];
    if (!secret_name(option_name(word))) continue;
    size_t equals = word.find('=');
    if (equals != std::string::npos) word = word.substr(0, equals + 1) + "***";
    else if (word[0] == '-' && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-')) arguments[++i] = "***";
  }
}

}  // namespace

bool secret_name(std::string_view name) {
  std::string lower = base::to_lower(base::replace_all(name, "-", "_"));
  for (std::string_view word : base::split(lower, '_'))
    if (one_of(word, {"key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials"})) return true;
  return false;
}

Understood read_launch(const std::vector<std::string>& all) {
  Understood out;
  LaunchLine& line = out.line;
  Words words = skip_wrappers(all, line);
  if (words.empty()) return out;
  std::string name = base_name(words[0]);
  Words rest = words.subspan(1);
  if (is_python(name)) {
    read_python(rest, line);
  } else if (name == "torchrun") {
    line.launcher = name;
    read_options(rest, line, kTorchrunFlags);
  } else if (name == "accelerate" && !rest.empty() && rest[0] == "launch") {
    line.launcher = name;
    read_options(rest.subspan(1), line, kAccelerateFlags);
  } else if (name == "accelerate-launch") {
    line.launcher = "accelerate";
    read_options(rest, line, kAccelerateFlags);
  } else if (name == "deepspeed") {
    line.launcher = name;
    read_options(rest, line, kDeepspeedFlags);
  } else if (name == "llamafactory-cli" || name == "lmf") {
    read_llamafactory(rest, line);
  } else if ((name == "lightning" || name == "fabric") && rest.size() > 1 && rest[0] == "run") {
    line.launcher = "lightning";
    read_options(rest.subspan(rest[1] == "model" ? 2 : 1), line, {});
  } else if (name == "phalanx-train") {
    line.launcher = name;
    auto config =
        std::find_if(rest.begin(), rest.end(), [](const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); });
    if (config == rest.end())
      config = std::find_if(rest.begin(), rest.end(), [](const std::string& word) { return !word.starts_with('-'); });
    if (config != rest.end()) {  // behind options such as --check-data
      line.program = *config;
      line.arguments.assign(rest.begin(), config);
      line.arguments.insert(line.arguments.end(), config + 1, rest.end());
    }
  } else if (one_of(name, {"bash", "sh", "zsh", "dash", "ksh"})) {
    read_shell_start(rest, out);
  } else if (words[0].find('/') != std::string::npos || name.ends_with(".sh") || name.ends_with(".py")) {
    line.launcher = "direct";
    line.program = words[0];
    line.arguments.assign(rest.begin(), rest.end());
  }
  cut_secrets(line.arguments);
  return out;
}

std::vector<Argument> read_arguments(const std::vector<std::string>& arguments) {
  std::vector<Argument> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    size_t equals = word.find('=');
    const bool dashed = word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1]));
    if (dashed && equals != std::string::npos) {
      out.push_back({option_name(word), word.substr(equals + 1), true});
    } else if (dashed) {
      std::string value;
      if (i + 1 < arguments.size() && (!arguments[i + 1].starts_with('-') || arguments[i + 1].size() == 1)) value = arguments[++i];
      out.push_back({option_name(word), value, true});
    } else if (is_assignment(word) || (equals != std::string::npos && equals > 0 && word.find('/') > equals)) {
      std::string name = word.substr(word[0] == '+' ? 1 : 0, equals - (word[0] == '+' ? 1 : 0));
      out.push_back({base::replace_all(name, "-", "_"), word.substr(equals + 1), true});
    } else {
      out.push_back({"", word, false});
    }
  }
  return out;
}

}  // namespace phalanx::machine
