// Hints from the text of Python scripts: loaders, samplers, what is saved and by whom.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/rows_command.h"
#include "host/launch_line.h"

namespace doctor {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// A script's text without comments.
std::string code(const std::vector<CodeLine>& lines) {
  std::string all;
  for (const CodeLine& line : lines) all += line.text + "\n";
  return all;
}

bool wraps_ddp(const std::string& text) { return has(text, "DistributedDataParallel(") || has(text, "= DDP("); }

void line_found(const Situation& s, Findings& findings, const UserFile& file, const CodeLine& line, const std::string& english = "",
                const std::string& chinese = "") {
  std::string at = fmt::format("{}:{}", shown(s, file.file->path), line.number), text = line.text.substr(0, 120);
  tell(findings, s, file.hosts, {fmt::format("{}: {}{}", at, text, english), fmt::format("{}：{}{}", at, text, chinese)});
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
      findings.on(h,
                  {fmt::format("{}:{}: Trainer in one rank that sees {} GPUs", shown(s, file.file->path), line->number, gpus),
                   fmt::format("{}:{}：一个 rank 里的 Trainer 能看到 {} 块 GPU", shown(s, file.file->path), line->number, gpus)},
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
    if (loops) line_found(s, findings, file, *line, "; set_epoch is never called", "；从未调用 set_epoch");
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
      line_found(s, findings, file, line, fmt::format(" (under line {}: {})", guard->number, guard->text.substr(0, 60)),
                 fmt::format("（位于第 {} 行 {} 之下）", guard->number, guard->text.substr(0, 60)));
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
    findings.on(
        h, {fmt::format("{}: {} workers × {} ranks = {} processes for {} cores", at, *each, host.ranks, *each * host.ranks, cpus),
            fmt::format("{}：{} 个 worker × {} 个 rank = {} 个进程，而只有 {} 个核", at, *each, host.ranks, *each * host.ranks, cpus)});
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
    for (const host::Argument& a : host::read_arguments(launch.line->arguments))
      if (a.name == "num_workers" || a.name == "dataloader_num_workers" || a.name == "workers")
        workers_on(s, findings, launch.hosts, "--" + a.name, a.value);
}

constexpr Row kDataScriptRows[] = {
    {"DATA-DATAPARALLEL",
     Severity::kWarning,
     Group::kData,
     {"the script uses DataParallel", "脚本使用了 DataParallel"},
     {"Does the script use DistributedDataParallel rather than DataParallel?",
      "脚本用的是否为 DistributedDataParallel 而不是 DataParallel？"},
     {"DataParallel copies the model to every GPU in each step, gathers outputs and loss on the first one, and drives all from one Python "
      "thread: GPU 0 is full while the others are nearly empty, and two GPUs may take longer than one (2–3 step/s become 2–3 s/step). In "
      "several "
      "ranks it also makes every rank use every GPU.",
      "DataParallel 每一步都把模型复制到各 GPU，把输出和 loss 收集到第一块卡上，并由一个 Python 线程驱动：GPU 0 "
      "显存占满，其余几乎空着，多卡可能比单卡还慢"
      "（2~3 step/s 变成 2~3 s/step）。多 rank 时还会让每个 rank 都占用全部 GPU。"},
     {"Wrap the model in DistributedDataParallel, one process per GPU, and compute the loss in each.\n$ phalanx run --nproc-per-node 2 -- "
      "python <script>",
      "改用 DistributedDataParallel，每块 GPU 一个进程，各自计算 loss。\n$ phalanx run --nproc-per-node 2 -- python <script>"},
     "torch/nn/parallel/data_parallel.py",
     data_parallel},
    {"DATA-TRAINER-DP",
     Severity::kWarning,
     Group::kData,
     {"Trainer would fall back to DataParallel", "Trainer 会退化为 DataParallel"},
     {"Is there one rank per GPU for a HuggingFace Trainer?", "使用 HuggingFace Trainer 时是否每块 GPU 一个 rank？"},
     {"One process that sees several GPUs makes Trainer wrap the model in DataParallel: slower than one card, and GPU 0 runs out of memory "
      "first.",
      "一个进程能看到多块 GPU 时，Trainer 会用 DataParallel 包装模型：比单卡还慢，而且 GPU 0 最先显存不足。"},
     {"Start one rank per GPU.\n$ phalanx run --nproc-per-node 2 -- python <script>",
      "每块 GPU 启动一个 rank。\n$ phalanx run --nproc-per-node 2 -- python <script>"},
     "transformers/training_args.py: n_gpu; transformers/trainer.py: _wrap_model",
     trainer},
    {"DATA-SET-EPOCH",
     Severity::kWarning,
     Group::kData,
     {"set_epoch is never called", "从未调用 set_epoch"},
     {"Is sampler.set_epoch(epoch) called where a DistributedSampler shuffles?",
      "DistributedSampler 打乱数据时，是否调用了 sampler.set_epoch(epoch)？"},
     {"DistributedSampler shuffles by seed + epoch, and epoch stays 0: every epoch has the same order. Nothing fails; the model is a "
      "little worse.",
      "DistributedSampler 按 seed + epoch 打乱，而 epoch 一直是 0：每个 epoch 的顺序完全相同。不会报错，只是模型会差一些。"},
     {"Call it at the start of every epoch: sampler.set_epoch(epoch).\n$ grep -n 'for epoch' <script>",
      "在每个 epoch 开始时调用 sampler.set_epoch(epoch)。\n$ grep -n 'for epoch' <script>"},
     "torch/utils/data/distributed.py",
     set_epoch},
    {"DATA-NO-SAMPLER",
     Severity::kWarning,
     Group::kData,
     {"every rank would read the whole data", "每个 rank 都会读取全部数据"},
     {"Does a script with DistributedDataParallel share its data out among the ranks?",
      "使用 DistributedDataParallel 的脚本是否把数据分给各 rank？"},
     {"A DataLoader without a DistributedSampler gives every rank the same samples: an epoch takes as long as on one card, and the "
      "gradients are "
      "averages of equal things.",
      "没有 DistributedSampler 的 DataLoader 会让每个 rank 得到相同的样本：一个 epoch 和单卡一样久，梯度平均也失去意义。"},
     {"Give it sampler=DistributedSampler(dataset) and call set_epoch.\n$ grep -n 'DataLoader(' <script>",
      "传入 sampler=DistributedSampler(dataset)，并调用 set_epoch。\n$ grep -n 'DataLoader(' <script>"},
     "torch/utils/data/distributed.py",
     no_sampler},
    {"DATA-UNEVEN",
     Severity::kNote,
     Group::kData,
     {"ranks may have different numbers of batches", "各 rank 的批数可能不同"},
     {"Do all ranks of an IterableDataset end after the same number of batches?", "使用 IterableDataset 时各 rank 的批数是否相同？"},
     {"Nothing pads an IterableDataset. The rank that runs out first leaves the loop, the others wait in all-reduce: the last step hangs "
      "until the "
      "time-out, in training or at the epoch's end.",
      "IterableDataset 不会自动补齐。先读完的 rank 退出循环，其余 rank 停在 all-reduce 上：最后一步一直卡到超时。"},
     {"Fix the number of steps, repeat the data, or train inside torch.distributed.algorithms.join.Join.\n$ grep -n IterableDataset "
      "<script>",
      "固定步数、循环读取数据，或放在 torch.distributed.algorithms.join.Join 中训练。\n$ grep -n IterableDataset <script>"},
     "torch/distributed/algorithms/join.py",
     uneven},
    {"DATA-RANK0-COLLECTIVE",
     Severity::kWarning,
     Group::kData,
     {"a call that all ranks must make stands under `if rank == 0`", "需要所有 rank 参与的调用写在了 `if rank == 0` 里"},
     {"Are all-gathers, and saves that gather shards, called by every rank?", "all-gather 以及需要汇集分片的保存，是否由所有 rank 调用？"},
     {"With ZeRO or FSDP a save gathers from all ranks. Called by rank 0 alone, it waits for ever at the first save; the others wait in "
      "the next "
      "step: \"Watchdog caught collective operation timeout: … OpType=_ALLGATHER_BASE\" on one rank, ALLREDUCE on the rest.",
      "使用 ZeRO 或 FSDP 时，保存需要从所有 rank 汇集。只有 rank 0 调用，第一次保存就会一直等下去，其余 rank 停在下一步："
      "一个 rank 报 \"Watchdog caught collective operation timeout: … OpType=_ALLGATHER_BASE\"，其余报 ALLREDUCE。"},
     {"Call it on all ranks and let only rank 0 write.\n$ grep -nE 'rank.*== *0' <script>",
      "让所有 rank 都调用，只由 rank 0 写文件。\n$ grep -nE 'rank.*== *0' <script>"},
     "deepspeed/runtime/engine.py: save_checkpoint; torch/distributed/fsdp",
     rank0_collective},
    {"DATA-ALL-WRITE",
     Severity::kNote,
     Group::kData,
     {"every rank saves the model", "每个 rank 都会保存模型"},
     {"Does only one rank write the checkpoint?", "检查点是否只由一个 rank 写入？"},
     {"With DistributedDataParallel all ranks hold the same weights. On a shared file system they write one file at once: it may be cut or "
      "mixed, and "
      "every save takes N times as long.",
      "使用 DistributedDataParallel 时所有 rank 的权重相同。在共享文件系统上同时写一个文件，可能残缺或混杂，而且每次保存要花 N 倍时间。"},
     {"Save on rank 0: if dist.get_rank() == 0: torch.save(model.module.state_dict(), path).\n$ grep -n 'torch.save' <script>",
      "只在 rank 0 保存：if dist.get_rank() == 0: torch.save(model.module.state_dict(), path)。\n$ grep -n 'torch.save' <script>"},
     "",
     all_write},
    {"DATA-MODULE-PREFIX",
     Severity::kNote,
     Group::kData,
     {"the wrapped model is saved", "保存的是被包装后的模型"},
     {"Is model.module saved, not the DistributedDataParallel around it?",
      "保存的是 model.module，而不是外层的 DistributedDataParallel 吗？"},
     {"The names in the checkpoint begin with \"module.\": loading it into the plain model fails with \"Missing key(s) in state_dict\" and "
      "\"Unexpected key(s) in state_dict: \"module.…\"\".",
      "检查点里的参数名会带 \"module.\" 前缀：加载到未包装的模型时报 \"Missing key(s) in state_dict\" 与 \"Unexpected key(s) in "
      "state_dict: \"module.…\"\"。"},
     {"Save model.module.state_dict().\n$ grep -n 'state_dict()' <script>",
      "改为保存 model.module.state_dict()。\n$ grep -n 'state_dict()' <script>"},
     "torch/nn/parallel/distributed.py",
     module_prefix},
    {"DATA-WORKERS",
     Severity::kWarning,
     Group::kData,
     {"far more loader processes than cores", "数据加载进程远多于 CPU 核数"},
     {"Are workers × ranks of a host within twice its cores?", "每台机器的 worker 数 × rank 数是否不超过核数的两倍？"},
     {"num_workers counts per rank. 3 × GPUs written for one process becomes 3 × GPUs × GPUs with one process per GPU: the loaders fight "
      "for cores "
      "and memory, batches come late, shared memory runs out (\"DataLoader worker (pid N) is killed by signal: Bus error\").",
      "num_workers 是每个 rank 的数量。为单进程写的 3 × GPU 数，在一卡一进程时就变成 3 × GPU 数 × GPU "
      "数：加载进程互相抢核抢内存，取数变慢，"
      "共享内存耗尽（\"DataLoader worker (pid N) is killed by signal: Bus error\"）。"},
     {"Take cores ÷ ranks of a host, less one or two.\n$ nproc", "取核数 ÷ 每台机器的 rank 数，再减一两个。\n$ nproc"},
     "torch/utils/data/dataloader.py",
     workers},
};

}  // namespace

std::span<const Row> data_script_rows() { return kDataScriptRows; }

}  // namespace doctor
