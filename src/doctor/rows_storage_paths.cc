// The paths the command names: on every host, and the same there.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/examine.h"
#include "doctor/rows_storage.h"
#include "host/mounts.h"

namespace doctor {
namespace {

using host::PathFact;

// Known to be there, or known not to be: not where the file system was silent or refused to say.
bool known(const Situation& s, size_t h, const PathFact& f) { return !is_hung(s, h, f.path) && (f.exists || f.error.empty()); }

struct Presence {
  std::vector<size_t> have, lack;
  const PathFact* example = nullptr;  // of one that has it
};
Presence presence(const Situation& s, const PathOnHosts& p) {
  Presence result;
  for (const auto& [h, f] : p.seen) {
    if (!known(s, h, *f)) continue;
    (f->exists ? result.have : result.lack).push_back(h);
    if (f->exists && !result.example) result.example = f;
  }
  return result;
}

// To be typed where it is missing: from a server if it lies on one, else from a host that has it.
std::string bring(const Situation& s, const Presence& p) {
  const PathFact& f = *p.example;
  if (host::is_network_fs(f.fs_type))
    return fmt::format("sudo mkdir -p {0} && sudo mount -t {1} {2} {0}", base::shell_quote(f.mount_point), f.fs_type,
                       base::shell_quote(f.source));
  std::string end = f.kind == "folder" ? "/" : "";
  std::string folder = f.path.substr(0, std::max<size_t>(1, f.path.rfind('/')));
  return fmt::format("mkdir -p {} && rsync -a {} {}", base::shell_quote(f.kind == "folder" ? f.path : folder),
                     base::shell_quote(s.hosts[p.have[0]].name + ":" + f.path + end), base::shell_quote(f.path + end));
}

void path_missing(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || !found.have.empty()) continue;
    std::string link = p.seen[0].second->kind == "link" ? ", a link to nothing" : "";
    findings.on(found.lack, {fmt::format("{} ({}) does not exist{}", p.path, p.named_by, link),
                             fmt::format("{}（{}）不存在{}", p.path, p.named_by, link.empty() ? "" : "，是一个失效的链接")});
  }
}

void path_only_on(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || found.have.empty()) continue;
    Words have = host_names(s, found.have);
    findings.on(found.lack,
                {fmt::format("{} ({}) is not here; it is on {}", p.path, p.named_by, have.english),
                 fmt::format("{}（{}）在这里不存在，只在 {} 上有", p.path, p.named_by, have.chinese)},
                bring(s, found));
  }
}

void path_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"any"})) {
    Presence found = presence(s, p);
    if (found.lack.empty() || found.have.empty()) continue;
    Words have = host_names(s, found.have);
    findings.on(found.lack,
                {fmt::format("{} ({}) is not here; it is on {}", p.path, p.named_by, have.english),
                 fmt::format("{}（{}）在这里不存在，只在 {} 上有", p.path, p.named_by, have.chinese)},
                bring(s, found));
  }
}

Words kind_words(const std::string& kind) { return kind == "folder" ? Words{"a folder", "目录"} : Words{"a file", "文件"}; }

void kind_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any"})) {
    const PathFact* first = nullptr;
    for (const auto& [h, f] : p.seen) {
      if (!f->exists || (f->kind != "file" && f->kind != "folder")) continue;
      if (!first) first = f;
      if (f->kind == first->kind) continue;
      Words own = kind_words(f->kind), other = kind_words(first->kind);
      findings.on(h, {fmt::format("{} ({}) is {}; elsewhere it is {}", p.path, p.named_by, own.english, other.english),
                      fmt::format("{}（{}）在这里是{}，在其他机器上是{}", p.path, p.named_by, own.chinese, other.chinese)});
    }
  }
}

void unreadable(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    if (f.role != "input" || !contains(f.error, "Permission denied")) return;
    findings.on(h,
                {fmt::format("{} ({}), as user {}: {}", f.path, f.named_by, s.hosts[h].facts.machine.user, f.error),
                 fmt::format("{}（{}），用户 {}：{}", f.path, f.named_by, s.hosts[h].facts.machine.user, f.error)},
                "namei -l " + base::shell_quote(f.path));
  });
}

void workdir_missing(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"workdir"})) {
    Presence found = presence(s, p);
    if (found.lack.empty()) continue;
    findings.on(found.lack, {fmt::format("{} does not exist", p.path), fmt::format("{} 不存在", p.path)},
                found.have.empty() ? "" : bring(s, found));
  }
}

std::string content_words(const PathFact& f) {
  if (f.kind == "file") return base::format_bytes(static_cast<uint64_t>(f.size)) + ", " + f.token;
  return fmt::format("{} entries, {}", f.entries, f.token);
}

void content_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input"})) {
    std::vector<Camp> groups = camps(s, [&](const HostView& h) -> std::optional<std::string> {
      for (const auto& [at, f] : p.seen)
        if (&s.hosts[at] == &h && f->exists && !f->token.empty()) return f->token;
      return std::nullopt;
    });
    if (groups.size() < 2) continue;
    auto fact_of = [&](size_t host) {
      return *std::find_if(p.seen.begin(), p.seen.end(), [&](const auto& seen) { return seen.first == host; })->second;
    };
    Words usual = host_names(s, groups[0].hosts);
    std::string usual_words = content_words(fact_of(groups[0].hosts[0]));
    for (size_t g = 1; g < groups.size(); ++g) {
      PathFact odd = fact_of(groups[g].hosts[0]);
      std::string end = odd.kind == "folder" ? "/" : "";
      findings.on(groups[g].hosts,
                  {fmt::format("{} ({}): {}; {}: {}", p.path, p.named_by, content_words(odd), usual.english, usual_words),
                   fmt::format("{}（{}）：{}；而 {} 上为 {}", p.path, p.named_by, content_words(odd), usual.chinese, usual_words)},
                  fmt::format("rsync -rcni {} {}", base::shell_quote(s.hosts[groups[0].hosts[0]].name + ":" + p.path + end),
                              base::shell_quote(p.path + end)));
    }
  }
}

constexpr Row kPathRows[] = {
    {"FS-PATH-MISSING",
     Severity::kWarning,
     Group::kStorage,
     {"a path of the command is nowhere", "命令中的路径在所有机器上都不存在"},
     {"Does every path that the command reads exist?", "命令要读取的路径是否都存在？"},
     {"\"FileNotFoundError: [Errno 2] No such file or directory\", after every rank has imported its libraries. HuggingFace takes a path "
      "that is "
      "not there for the name of a repository: \"Repo id must be in the form 'repo_name' or 'namespace/repo_name'\". A program may also "
      "make "
      "or download it itself.",
      "各 rank 加载完库之后才报 \"FileNotFoundError: [Errno 2] No such file or directory\"。HuggingFace 会把不存在的路径当成仓库名："
      "\"Repo id must be in the form 'repo_name' or 'namespace/repo_name'\"。也可能是程序自己会创建或下载它。"},
     {"Look for a misspelt part; relative paths count from the working directory:\n$ namei -l <path>",
      "检查是否写错；相对路径从工作目录算起：\n$ namei -l <path>"},
     "",
     path_missing},
    {"FS-PATH-ONLY-ON",
     Severity::kError,
     Group::kStorage,
     {"data or model is on some hosts only", "数据或模型只在部分机器上"},
     {"Does what the command reads exist on every host?", "命令要读取的内容是否每台机器上都有？"},
     {"The ranks where it is missing end with \"FileNotFoundError\"; the others wait for them in the first collective until NCCL's "
      "timeout, and "
      "their log is the one that is read first.",
      "缺少文件的机器上 rank 报 \"FileNotFoundError\" 退出；其他 rank 在第一次集合通信处等到 NCCL 超时，而人们往往先看到的是它们的日志。"},
     {"Copy it, or mount the same file system:\n$ rsync -a <host>:<path> <path>",
      "复制过去，或挂载同一个文件系统：\n$ rsync -a <host>:<path> <path>"},
     "field note 4",
     path_only_on},
    {"FS-PATH-DIFFERS",
     Severity::kWarning,
     Group::kStorage,
     {"a path in the command is on some hosts only", "命令中的某个路径只在部分机器上"},
     {"Is a path that the command names on all hosts or on none?", "命令提到的路径是否各机器都有（或都没有）？"},
     {"What it is for could not be told from the command. If it is read, the ranks that lack it end with \"FileNotFoundError\".",
      "从命令看不出它的用途。若是要读取的，缺少它的机器上 rank 会报 \"FileNotFoundError\"。"},
     {"Copy it if it is read:\n$ rsync -a <host>:<path> <path>", "如果是要读取的，复制过去：\n$ rsync -a <host>:<path> <path>"},
     "",
     path_differs},
    {"FS-KIND-DIFFERS",
     Severity::kWarning,
     Group::kStorage,
     {"a path is a file here and a folder there", "同一路径在不同机器上分别是文件和目录"},
     {"Is each path of the command the same kind of thing on all hosts?", "命令中的每个路径在各机器上类型是否一致？"},
     {"\"NotADirectoryError: [Errno 20]\" or \"IsADirectoryError: [Errno 21]\" on some ranks only. A failed copy (scp of a folder onto a "
      "file name, "
      "or one level too deep) leaves such things.",
      "只有部分 rank 报 \"NotADirectoryError: [Errno 20]\" 或 \"IsADirectoryError: [Errno 21]\"。通常是复制出错（把目录 scp "
      "成了文件名，或多套了一层）。"},
     {"Remove the wrong one and copy again:\n$ ls -ld <path>", "删掉错误的一份，重新复制：\n$ ls -ld <path>"},
     "",
     kind_differs},
    {"FS-PATH-UNREADABLE",
     Severity::kError,
     Group::kStorage,
     {"data or model may not be read", "数据或模型没有读取权限"},
     {"May the job's user read what the command reads?", "运行任务的用户能否读取命令要读的内容？"},
     {"\"PermissionError: [Errno 13] Permission denied\". The numeric user id may differ between hosts, a folder above may be closed (mode "
      "0700), "
      "or the server maps root to nobody.",
      "\"PermissionError: [Errno 13] Permission denied\"。可能是各机器上的数字 uid 不同、上级目录不开放（0700），或服务器把 root 映射成了 "
      "nobody。"},
     {"See which part is closed:\n$ namei -l <path>\n$ id", "查看卡在哪一级：\n$ namei -l <path>\n$ id"},
     "path_resolution(7)",
     unreadable},
    {"FS-WORKDIR-MISSING",
     Severity::kError,
     Group::kStorage,
     {"the working directory does not exist", "工作目录不存在"},
     {"Is the working directory on every host?", "每台机器上是否都有工作目录？"},
     {"The ranks are started in the folder in which the launcher was called. Where it does not exist, no rank can be started.",
      "rank 会在调用启动器时所在的目录中启动。某台机器没有这个目录，就无法启动那里的 rank。"},
     {"Make it, copy the project there, or name another:\n$ rsync -a ./ <host>:$PWD/",
      "创建并复制项目过去，或指定其他目录：\n$ rsync -a ./ <host>:$PWD/"},
     "chdir(2): ENOENT",
     workdir_missing},
    {"FS-CONTENT-DIFFERS",
     Severity::kWarning,
     Group::kStorage,
     {"the same path holds different content", "同一路径内容不一致"},
     {"Do data, model and configuration have the same content on all hosts?", "数据、模型和配置在各机器上内容是否一致？"},
     {"Ranks with another data set have another number of batches and wait for each other at the end of the epoch. Ranks with another "
      "model or "
      "configuration differ in shapes (\"DDP expects same model across all ranks\"), or train something that nobody meant. A copy that "
      "broke "
      "off looks so too.",
      "数据集不同的 rank，batch 数不同，会在 epoch 末尾互相等待；模型或配置不同的 rank，张量形状不一致（\"DDP expects same model across "
      "all "
      "ranks\"），或者训练出意料之外的结果。复制中断也会造成这种情况。"},
     {"See what differs, then copy without n:\n$ rsync -rcni <host>:<path> <path>",
      "先看差异，确认后去掉 n 再执行：\n$ rsync -rcni <host>:<path> <path>"},
     "",
     content_differs},
};

}  // namespace

std::span<const Row> path_rows() { return kPathRows; }

}  // namespace doctor
