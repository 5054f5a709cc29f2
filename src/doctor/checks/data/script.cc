// Hints from the text of Python scripts: loaders, samplers, what is saved and by whom.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/views/command_view.h"
#include "machine/command/launch_line.h"

namespace phalanx::doctor {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// A script's text without comments.
std::string code(const std::vector<CodeLine>& lines) {
  std::string all;
  for (const CodeLine& line : lines) all += line.text + "\n";
  return all;
}

bool wraps_ddp(const std::string& text) { return has(text, "DistributedDataParallel(") || has(text, "= DDP("); }

void line_found(const Situation& s, Findings& findings, const UserFile& file, const CodeLine& line, const Words& more = {}) {
  std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number), text = line.text.substr(0, 120);
  tell(findings, s, file.hosts, tr("{}: {}{}", at, text, more));
}

size_t most_gpus(const Situation& s) {
  size_t most = 0;
  for (const HostView& h : s.hosts) most = std::max(most, h.facts.gpus.devices.size());
  return most;
}

void data_parallel(const Situation& s, Findings& findings) {
  if (s.job.world < 2 && most_gpus(s) < 2) return;
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    // Beside DistributedDataParallel it is the branch for a start without a launcher.
    const CodeLine* line = line_with(lines, "DataParallel(");
    if (line && !wraps_ddp(code(lines))) line_found(s, findings, file, *line);
  }
}

void trainer(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const CodeLine* line = line_with(lines, "Trainer(");
    if (!line || !has(code(lines), "transformers")) continue;
    for (size_t h : file.hosts) {
      const size_t gpus = s.hosts[h].facts.gpus.devices.size();
      auto visible = s.variable(h, "CUDA_VISIBLE_DEVICES");
      if (s.hosts[h].ranks != 1 || gpus < 2 || (visible && !has(*visible, ","))) continue;
      findings.on(h, tr("{}:{}: Trainer in a single rank that sees {} GPUs", shown(s, file.file->path), line->number, gpus),
                  fmt::format("phalanx run -H {} --nproc-per-node {} -- python {}", host_list(s), gpus,
                              base::shell_quote(shown(s, file.file->path))));
    }
  }
}

void set_epoch(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const std::string text = code(lines);
    const CodeLine* line = line_with(lines, "DistributedSampler(");
    if (!line || has(text, "set_epoch(") || has(line->text, "shuffle=False") || has(text, "Trainer(") ||
        has(text, "class DistributedSampler"))
      continue;
    bool loops = false;
    for (const CodeLine& l : lines) loops = loops || (l.text.starts_with("for ") && has(l.text, "epoch"));
    if (loops) line_found(s, findings, file, *line, tr("; set_epoch is never called"));
  }
}

void no_sampler(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const std::string text = code(lines);
    const CodeLine* line = line_with(lines, "DataLoader(");
    if (!line || !wraps_ddp(text)) continue;
    bool handled = false;
    for (std::string_view word : {"DistributedSampler", "sampler", "split_dataset_by_node", "Iterable", "accelerat", "rank::", "rank]",
                                  "shard(", "wds.", "WebDataset", "world_size", "num_replicas"})
      handled = handled || has(text, word);
    if (!handled) line_found(s, findings, file, *line);
  }
}

void uneven(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const std::string text = code(lines);
    if (!wraps_ddp(text) || has(text, "Join(") || has(text, ".join()")) continue;
    for (const CodeLine& line : lines)
      if (line.text.starts_with("class ") && has(line.text, "IterableDataset")) {
        line_found(s, findings, file, line);
        break;
      }
  }
}

// The line tests for rank 0: what is indented below it runs on one rank only.
bool only_rank_zero(const std::string& line) {
  if (!line.starts_with("if ") || has(line, " or ") || has(line, "!=") || has(line, "not ")) return false;
  std::string packed = base::replace_all(line, " ", "");
  return has(packed, "rank==0") || has(packed, "rank()==0") || has(packed, "rank']==0") || has(packed, "is_main_process") ||
         has(packed, "is_global_zero") || has(packed, "is_rank_zero");
}

// A call that every rank has to make.
std::string_view collective(const std::string& line, const std::string& text) {
  for (std::string_view call : {"all_reduce(", "all_gather(", "all_gather_object(", "reduce_scatter(", "save_16bit_model("})
    if (has(line, call)) return call;
  if (has(text, "deepspeed") && has(line, ".save_checkpoint(")) return ".save_checkpoint(";
  if (has(line, "accelerator.get_state_dict(")) return "accelerator.get_state_dict(";
  if (has(line, "accelerator.gather")) return "accelerator.gather";
  const bool sharded = has(text, "FullyShardedDataParallel") || has(text, "FSDP(") || has(text, "fully_shard(");
  if (sharded && (has(line, "model.state_dict(") || has(line, "net.state_dict("))) return "model.state_dict(";
  return {};
}

void rank0_collective(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    const std::string text = code(lines);
    const CodeLine* guard = nullptr;
    for (const CodeLine& line : lines) {
      if (guard && line.indent <= guard->indent) guard = nullptr;
      if (!guard && only_rank_zero(line.text)) {
        guard = &line;
        continue;
      }
      if (!guard || collective(line.text, text).empty()) continue;
      line_found(s, findings, file, line, tr(" (under line {}: {})", guard->number, guard->text.substr(0, 60)));
      break;
    }
  }
}

void all_write(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    if (!wraps_ddp(code(lines))) continue;
    const CodeLine* save = line_with(lines, "torch.save(");
    bool guarded = false;  // by any test of a rank or a main process above it: the call may also lie in a function that is guarded
    for (const CodeLine& line : lines)
      guarded = guarded ||
                (line.text.starts_with("if ") && (has(line.text, "rank") || has(line.text, "main_process") || has(line.text, "master")));
    if (save && !guarded && !has(save->text, "rank")) line_found(s, findings, file, *save);
  }
}

void module_prefix(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script")) {
    const std::vector<CodeLine> lines = code_lines(file.file->text);
    for (const CodeLine& wrap : lines) {
      size_t call = std::min(wrap.text.find("DistributedDataParallel("), wrap.text.find("= DDP("));
      size_t equals = wrap.text.find('=');
      if (call == std::string::npos || equals == std::string::npos || equals > call) continue;
      std::string name(base::trim(wrap.text.substr(0, equals)));
      if (name.empty()) continue;
      auto saves = [&](const CodeLine& line) {
        return has(line.text, "save(") && has(line.text, name + ".state_dict()") && !has(line.text, name + ".module");
      };
      auto save = std::find_if(lines.begin(), lines.end(), saves);
      if (save == lines.end()) continue;
      line_found(s, findings, file, *save);
      break;
    }
  }
}

// "8", "3*args.num_gpus", "os.cpu_count() // 2"; none where a factor is not known.
std::optional<int64_t> evaluate(std::string_view text, int64_t gpus, int64_t cpus) {
  std::string whole = base::replace_all(base::replace_all(text, " ", ""), "//", "/");
  int64_t value = 1;
  char operation = '*';
  while (!whole.empty()) {
    size_t end = std::min(whole.find_first_of("*/"), whole.size());
    std::string factor = whole.substr(0, end);
    std::optional<int64_t> number;
    if (whole_number(factor)) number = std::stoll(factor);
    else if (has(factor, "num_gpus") || has(factor, "device_count") || has(factor, "n_gpu") || has(factor, "ngpus")) number = gpus;
    else if (has(factor, "cpu_count")) number = cpus;
    if (!number || *number > 100'000 || (operation == '/' && *number == 0) || value > 100'000) return std::nullopt;
    value = operation == '*' ? value * *number : value / *number;
    operation = end < whole.size() ? whole[end] : '*';
    whole = end < whole.size() ? whole.substr(end + 1) : "";
  }
  return value;
}

std::string argument_text(const std::string& line, std::string_view name) {
  size_t at = line.find(name);
  if (at == std::string::npos || (at > 0 && (std::isalnum(static_cast<unsigned char>(line[at - 1])) || line[at - 1] == '_'))) return "";
  std::string out;
  int depth = 0;
  for (size_t i = at + name.size(); i < line.size(); ++i) {
    if (line[i] == '(') ++depth;
    if (depth == 0 && (line[i] == ',' || line[i] == ')')) break;
    if (line[i] == ')') --depth;
    out += line[i];
  }
  return std::string(base::trim(out));
}

void workers_on(const Situation& s, Findings& findings, const std::vector<size_t>& hosts, const std::string& at, const std::string& text) {
  for (size_t h : hosts) {
    const HostView& host = s.hosts[h];
    const int64_t cpus = host.facts.machine.cpus_usable, gpus = static_cast<int64_t>(host.facts.gpus.devices.size());
    auto each = evaluate(text, gpus > 0 ? gpus : host.ranks, cpus);
    if (cpus < 1 || host.ranks < 1 || !each || *each * host.ranks <= 2 * cpus) continue;
    findings.on(h, tr("{}: {} workers × {} ranks = {} processes for {} cores", at, *each, host.ranks, *each * host.ranks, cpus));
  }
}

void workers(const Situation& s, Findings& findings) {
  for (const UserFile& file : user_files(s, "script"))
    for (const CodeLine& line : code_lines(file.file->text))
      if (std::string text = argument_text(line.text, "num_workers="); !text.empty())
        workers_on(s, findings, file.hosts, fmt::format("{}:{}", shown(s, file.file->path), line.number), text);
  for (const UserConfig& config : user_configs(s, "llamafactory"))
    if (auto n = int_at(config.value, "dataloader_num_workers"))
      workers_on(s, findings, config.file.hosts, config.place(s, "dataloader_num_workers"), std::to_string(*n));
  for (const UserLaunch& launch : user_launches(s))
    for (const machine::Argument& a : machine::read_arguments(launch.line->arguments))
      if (a.name == "num_workers" || a.name == "dataloader_num_workers" || a.name == "workers")
        workers_on(s, findings, launch.hosts, "--" + a.name, a.value);
}

constexpr Row kDataScriptRows[] = {
    {"DATA-DATAPARALLEL", Severity::kWarning, data_parallel},
    {"DATA-TRAINER-DP", Severity::kWarning, trainer},
    {"DATA-SET-EPOCH", Severity::kWarning, set_epoch},
    {"DATA-NO-SAMPLER", Severity::kWarning, no_sampler},
    {"DATA-UNEVEN", Severity::kNote, uneven},
    {"DATA-RANK0-COLLECTIVE", Severity::kWarning, rank0_collective},
    {"DATA-ALL-WRITE", Severity::kNote, all_write},
    {"DATA-MODULE-PREFIX", Severity::kNote, module_prefix},
    {"DATA-WORKERS", Severity::kWarning, workers},
};

}  // namespace

std::span<const Row> data_script_rows() { return kDataScriptRows; }

}  // namespace phalanx::doctor
