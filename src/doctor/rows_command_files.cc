// The files of the command: there, well formed, and the same on all hosts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/yaml.h"
#include "doctor/command_view.h"
#include "doctor/examine.h"
#include "doctor/rows_command.h"

namespace doctor {
namespace {

constexpr std::string_view kConfigRoles[] = {"deepspeed", "accelerate", "llamafactory", "lightning", "dataset_info", "config"};

struct Missing {
  std::string path, role, named_by, error;
  std::vector<size_t> hosts;
  std::optional<size_t> there;  // a host that has it
};

std::vector<Missing> missing_files(const Situation& s) {
  std::map<std::string, Missing> all;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    for (const host::CommandFile& file : s.hosts[h].facts.command.files) {
      Missing& m = all[file.path];
      if (file.exists) {
        m.there = h;
        continue;
      }
      m.path = file.path;
      m.role = file.role;
      m.named_by = file.named_by;
      m.hosts.push_back(h);
    }
  }
  std::vector<Missing> result;
  for (auto& [path, m] : all)
    if (!m.hosts.empty()) result.push_back(std::move(m));
  return result;
}

std::string copy_command(const Situation& s, const Missing& m) {
  if (!m.there) return "";
  const std::string& to = s.hosts[m.hosts.front()].name;
  return fmt::format("ssh {} scp -p {} {}:{}", s.hosts[*m.there].name, base::shell_quote(m.path), to, base::shell_quote(m.path));
}

// The script of the command's own words, without which no rank can start.
bool is_the_script(const Missing& m) { return m.named_by == "the command" && (m.role == "script" || m.role == "shell"); }

void script_missing(const Situation& s, Findings& findings) {
  for (const Missing& m : missing_files(s))
    if (is_the_script(m)) findings.on(m.hosts, {fmt::format("there is no {}", m.path), fmt::format("没有 {}", m.path)}, copy_command(s, m));
}

void file_missing(const Situation& s, Findings& findings) {
  for (const Missing& m : missing_files(s))
    if (!is_the_script(m))
      findings.on(m.hosts, {fmt::format("there is no {} ({})", m.path, m.named_by), fmt::format("没有 {}（{}）", m.path, m.named_by)},
                  copy_command(s, m));
}

void file_differs(const Situation& s, Findings& findings) {
  std::set<std::string> paths;
  for (const HostView& h : s.hosts)
    for (const host::CommandFile& file : h.facts.command.files)
      if (file.exists) paths.insert(file.path);
  for (const std::string& path : paths) {
    std::vector<Camp> all = camps(s, [&](const HostView& h) -> std::optional<std::string> {
      for (const host::CommandFile& file : h.facts.command.files)
        if (file.path == path && !file.sha256.empty()) return fmt::format("{} ({} bytes)", file.sha256.substr(0, 8), file.size);
      return std::nullopt;
    });
    if (all.size() < 2) continue;
    const bool tie = all[0].hosts.size() == all[1].hosts.size();
    const std::string& good = s.hosts[all[0].hosts.front()].name;
    for (size_t c = 1; c < all.size(); ++c) {
      std::vector<size_t> hosts = all[c].hosts;
      if (tie && c == 1) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
      findings.on(hosts,
                  {fmt::format("{}: {}; {}: {}", shown(s, path), all[c].value, tie ? good : "the others", all[0].value),
                   fmt::format("{}：{}；{}：{}", shown(s, path), all[c].value, tie ? good : "其余机器", all[0].value)},
                  fmt::format("ssh {} scp -p {} {}:{}", good, base::shell_quote(path), s.hosts[all[c].hosts.front()].name,
                              base::shell_quote(path)));
    }
  }
}

void git_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> all = camps(s, [](const HostView& h) -> std::optional<std::string> {
    const std::string& head = h.facts.command.git_head;
    return head.empty() ? std::nullopt : std::optional(head.substr(0, 12));
  });
  if (all.size() < 2) return;
  const bool tie = all[0].hosts.size() == all[1].hosts.size();
  for (size_t c = 1; c < all.size(); ++c) {
    std::vector<size_t> hosts = all[c].hosts;
    if (tie && c == 1) hosts.insert(hosts.begin(), all[0].hosts.begin(), all[0].hosts.end());
    findings.on(
        hosts,
        {fmt::format("the code is at commit {}; {} at {}", all[c].value, tie ? s.hosts[all[0].hosts[0]].name : "the others", all[0].value),
         fmt::format("代码位于提交 {}；{}位于 {}", all[c].value, tie ? s.hosts[all[0].hosts[0]].name + " " : "其余机器", all[0].value)},
        fmt::format("ssh {} git -C {} checkout {}", s.hosts[all[c].hosts[0]].name,
                    base::shell_quote(s.job.directory.empty() ? "." : s.job.directory), all[0].value));
  }
}

void config_syntax(const Situation& s, Findings& findings) {
  for (std::string_view role : kConfigRoles) {
    for (const UserFile& file : user_files(s, role)) {
      std::string error;
      if (file.file->path.ends_with(".json")) {
        if (auto json = base::parse_json(file.file->text); !json.ok()) error = json.error().message;
      } else if (auto yaml = base::parse_yaml(file.file->text); !yaml.ok()) {
        error = yaml.error().message;
      }
      if (error.empty()) continue;
      std::string name = shown(s, file.file->path), quoted = base::shell_quote(file.file->path);
      tell(findings, s, file.hosts, {fmt::format("{}: {}", name, error), fmt::format("{}：{}", name, error)},
           file.file->path.ends_with(".json") ? "python3 -m json.tool " + quoted
                                              : fmt::format("python3 -c 'import yaml,sys; yaml.safe_load(open(sys.argv[1]))' {}", quoted));
    }
  }
}

void config_twice(const Situation& s, Findings& findings) {
  for (std::string_view role : kConfigRoles) {
    for (const UserFile& file : user_files(s, role)) {
      if (file.file->path.ends_with(".json")) continue;
      auto yaml = base::parse_yaml(file.file->text);
      if (!yaml.ok() || yaml->twice.empty()) continue;
      const std::string& key = yaml->twice.front();
      std::string name = shown(s, file.file->path);
      const base::Json* value = value_at(yaml->value, key);
      std::string last = value ? base::to_text(*value) : "?";
      tell(findings, s, file.hosts,
           {fmt::format("{}: {} is given twice; {} in line {} counts", name, key, last, yaml->lines[key]),
            fmt::format("{}：{} 写了两次；以第 {} 行的 {} 为准", name, key, yaml->lines[key], last)});
    }
  }
}

constexpr Row kCommandFileRows[] = {
    {"CMD-SCRIPT-MISSING",
     Severity::kError,
     Group::kCommand,
     {"the script is not on every host", "有机器上没有要运行的脚本"},
     {"Is the script that the command names on each host?", "命令里的脚本在每台机器上都有吗？"},
     {"The ranks there end at once with \"can't open file 'train.py': [Errno 2] No such file or directory\"; the others wait for them "
      "until "
      "the time-out.",
      "那台机器上的 rank 会立刻退出：\"can't open file 'train.py': [Errno 2] No such file or directory\"，其余 rank 则一直等到超时。"},
     {"Copy the code there, mount it, or name the folder it is in.\n$ scp -p <script> <host>:<folder>\n$ phalanx run -C <folder> -- python "
      "<script>",
      "把代码拷过去、挂载共享目录，或指明所在目录。\n$ scp -p <script> <host>:<folder>\n$ phalanx run -C <folder> -- python <script>"},
     "",
     script_missing},
    {"CMD-FILE-MISSING",
     Severity::kWarning,
     Group::kCommand,
     {"a file that the command or a configuration names is missing", "命令或配置中提到的文件不存在"},
     {"Is every configuration, inner script and host file there on each host?", "每台机器上是否都有所需的配置、内层脚本与 hostfile？"},
     {"\"FileNotFoundError\" on that host only, while the others hang; for a DeepSpeed hostfile no error at all: \"Unable to find "
      "hostfile, will "
      "proceed with training with local resources only\".",
      "只有那台机器报 \"FileNotFoundError\"，其余机器卡住；DeepSpeed 的 hostfile 缺失则不报错："
      "\"Unable to find hostfile, will proceed with training with local resources only\"。"},
     {"Copy the file, or correct its name; paths are relative to the job's folder.\n$ scp -p <config> <host>:<folder>/",
      "拷贝文件，或改正路径；相对路径以任务目录为准。\n$ scp -p <config> <host>:<folder>/"},
     "deepspeed/launcher/runner.py: fetch_hostfile",
     file_missing},
    {"CMD-FILE-DIFFERS",
     Severity::kWarning,
     Group::kCommand,
     {"a script or configuration is not the same on all hosts", "各机器上的脚本或配置内容不一致"},
     {"Have the command's files the same content on each host?", "命令用到的文件在各机器上内容是否相同？"},
     {"Ranks with different code or settings call different collectives, or the same ones with other sizes: a hang in the middle, "
      "\"message "
      "truncated\", or a model that is silently wrong.",
      "代码或配置不同的 rank 会调用不同的集合通信，或同一个通信但尺寸不同：中途卡住、报 \"message truncated\"，或者悄悄训坏模型。"},
     {"Copy the right one to the others.\n$ scp -p <script> <host>:<folder>",
      "把正确的文件拷到其余机器。\n$ scp -p <script> <host>:<folder>"},
     "",
     file_differs},
    {"CMD-GIT-DIFFERS",
     Severity::kWarning,
     Group::kCommand,
     {"the code is checked out at different commits", "各机器上的代码处于不同的 git 提交"},
     {"Is the script's repository at the same commit on each host?", "脚本所在仓库在各机器上是否处于同一提交？"},
     {"The script may be the same while a module it imports is not: ranks then differ in what they compute and in which order.",
      "脚本本身相同，但它 import 的模块可能不同：各 rank 的计算内容和顺序就会不一致。"},
     {"Check the same commit out everywhere.\n$ git checkout <commit>", "在所有机器上检出同一个提交。\n$ git checkout <commit>"},
     "gitrepository-layout(5)",
     git_differs},
    {"CMD-CONFIG-SYNTAX",
     Severity::kWarning,
     Group::kCommand,
     {"a configuration cannot be read", "配置文件无法解析"},
     {"Is every YAML and JSON file of the command well formed?", "命令用到的 YAML 与 JSON 是否格式正确？"},
     {"Every rank ends while reading it: \"yaml.scanner.ScannerError\", \"json.decoder.JSONDecodeError\", after the time that imports "
      "take.",
      "每个 rank 都会在读取时退出：\"yaml.scanner.ScannerError\"、\"json.decoder.JSONDecodeError\"，而且要等 import 完才报。"},
     {"Correct the line that is named. JSON has no comments and no comma after the last entry.\n$ python3 -m json.tool <config>",
      "改正所指的那一行。JSON 不支持注释，最后一项后面不能有逗号。\n$ python3 -m json.tool <config>"},
     "",
     config_syntax},
    {"CMD-CONFIG-DUPLICATE",
     Severity::kWarning,
     Group::kCommand,
     {"a key is given twice in a configuration", "配置文件里有重复的键"},
     {"Is every key of the YAML files given once?", "YAML 文件里每个键是否只出现一次？"},
     {"YAML readers take the last one without a word, so that the line you look at may not be the one that counts; OmegaConf refuses the "
      "file: "
      "\"found duplicate key\".",
      "YAML 解析器会默默采用最后一个，你看到的那一行未必生效；OmegaConf 则拒绝读取：\"found duplicate key\"。"},
     {"Delete one of the two lines.\n$ grep -n learning_rate <config>", "删掉其中一行。\n$ grep -n learning_rate <config>"},
     "omegaconf/_utils.py: OmegaConfLoader",
     config_twice},
};

}  // namespace

std::span<const Row> command_file_rows() { return kCommandFileRows; }

}  // namespace doctor
