// Lints of LLaMA-Factory's and Lightning's YAML.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/command_view.h"
#include "doctor/known_keys.h"
#include "doctor/rows_command.h"
#include "host/launch_line.h"

namespace doctor {
namespace {

void keys(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    for (const Misspelt& m : misspelt_keys(config.value, llamafactory_keys())) {
      std::string at = config.place(s, m.key);
      tell(findings, s, config.file.hosts,
           {fmt::format("{}: {} is unknown; {} was probably meant", at, m.key, m.meant),
            fmt::format("{}：未知的键 {}；大概想写 {}", at, m.key, m.meant)},
           fmt::format("sed -i 's/^{}:/{}:/' {}", m.key, m.meant, base::shell_quote(config.file.file->path)));
    }
  }
}

void timeout(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    const base::Json* given = value_at(config.value, "ddp_timeout");
    const base::Json* prepared = value_at(config.value, "tokenized_path");
    if (!config.value.contains("dataset") || (prepared && prepared->is_string()) ||
        base::get_bool(config.value, "streaming").value_or(false))
      continue;
    if (given && (!given->is_number() || given->get<double>() > 1800)) continue;
    std::string at = config.place(s, "ddp_timeout"), value = given ? base::to_text(*given) + " s" : "1800 s by default";
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: ddp_timeout is {}; rank 0 prepares the data first, the others wait", at, value),
          fmt::format("{}：ddp_timeout 为 {}；rank 0 先预处理数据，其余 rank 等待", at,
                      given ? base::to_text(*given) + " 秒" : "默认的 1800 秒")},
         given ? fmt::format("sed -i 's/^ddp_timeout:.*/ddp_timeout: 180000000/' {}", base::shell_quote(config.file.file->path))
               : fmt::format("echo 'ddp_timeout: 180000000' >> {}", base::shell_quote(config.file.file->path)));
  }
}

void overwrite(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "llamafactory")) {
    const base::Json* on = value_at(config.value, "overwrite_output_dir");
    auto output = base::get_string(config.value, "output_dir");
    const base::Json* resume = value_at(config.value, "resume_from_checkpoint");
    if (!on || *on != true || !output || (resume && resume->is_string())) continue;
    std::string whole = (*output)[0] == '/' ? *output : s.job.directory + "/" + *output;
    for (size_t h = 0; h < s.hosts.size(); ++h)
      for (const host::PathFact& path : s.hosts[h].facts.storage.paths)
        if (path.path == whole && path.exists && path.entries > 0)
          findings.on(h, {fmt::format("{}: overwrite_output_dir: true; {} holds {} entries", config.place(s, "overwrite_output_dir"), whole,
                                      path.entries),
                          fmt::format("{}：overwrite_output_dir: true；{} 中已有 {} 项", config.place(s, "overwrite_output_dir"), whole,
                                      path.entries)});
  }
}

constexpr Row kLlamafactoryRows[] = {
    {"CMD-LLAMAFACTORY-KEY",
     Severity::kWarning,
     Group::kCommand,
     {"a key of LLaMA-Factory's configuration is misspelt", "LLaMA-Factory 配置中有拼错的键"},
     {"Are the keys of the training YAML known to LLaMA-Factory?", "训练 YAML 中的键是否都是 LLaMA-Factory 认识的？"},
     {"It refuses unknown keys: \"ValueError: Some keys are not used by the HfArgumentParser: ['preprocessing_num_works']\". The key in "
      "some "
      "notes, preprocessing_num_works, is preprocessing_num_workers.",
      "未知的键会被拒绝：\"ValueError: Some keys are not used by the HfArgumentParser: ['preprocessing_num_works']\"。有些笔记里写的 "
      "preprocessing_num_works，正确的是 preprocessing_num_workers。"},
     {"Correct the key.\n$ sed -i 's/^preprocessing_num_works:/preprocessing_num_workers:/' <config>",
      "改正键名。\n$ sed -i 's/^preprocessing_num_works:/preprocessing_num_workers:/' <config>"},
     "LLaMA-Factory src/llamafactory/hparams; transformers/hf_argparser.py",
     keys},
    {"CMD-LLAMAFACTORY-TIMEOUT",
     Severity::kNote,
     Group::kCommand,
     {"preparing the data may take longer than ranks wait", "数据预处理可能比 rank 的等待时间还长"},
     {"Is ddp_timeout long enough for the preparation of the data?", "ddp_timeout 是否足够完成数据预处理？"},
     {"Rank 0 tokenizes while the others stand in a barrier for ddp_timeout seconds, 1800 by default: then \"Watchdog caught collective "
      "operation "
      "timeout … SeqNum=1 … Timeout(ms)=1800000\", though nothing hangs.",
      "rank 0 做分词时其余 rank 都停在 barrier 上，最多等 ddp_timeout 秒（默认 1800）；超过就报 \"Watchdog caught collective operation "
      "timeout … "
      "SeqNum=1 … Timeout(ms)=1800000\"，其实并没有卡死。"},
     {"Prepare the data once into tokenized_path, or wait longer.\n$ echo 'ddp_timeout: 180000000' >> <config>",
      "先把数据预处理到 tokenized_path，或加大等待时间。\n$ echo 'ddp_timeout: 180000000' >> <config>"},
     "transformers/training_args.py: ddp_timeout; LLaMA-Factory examples/train_full",
     timeout},
    {"CMD-LLAMAFACTORY-OVERWRITE",
     Severity::kNote,
     Group::kCommand,
     {"an output folder that is not empty will be overwritten", "非空的输出目录将被覆盖"},
     {"Is overwrite_output_dir set while the output folder holds something?", "输出目录非空时是否设置了 overwrite_output_dir？"},
     {"With overwrite_output_dir: true the last checkpoint is not looked for: training starts at step 0 and new checkpoints replace the "
      "old ones.",
      "overwrite_output_dir: true 时不会查找已有检查点：训练从第 0 步开始，新检查点会替换旧的。"},
     {"To go on from the last checkpoint, say so.\n$ echo 'resume_from_checkpoint: <checkpoint>' >> <config>",
      "想接着训练就要写明。\n$ echo 'resume_from_checkpoint: <checkpoint>' >> <config>"},
     "LLaMA-Factory src/llamafactory/hparams/parser.py",
     overwrite},
};

// --- Lightning ---------------------------------------------------------------------------------------------------------------

// devices of a trainer: a number, a list, "0,1"; none for -1 and "auto".
std::optional<int64_t> device_count(const base::Json* value) {
  if (!value) return std::nullopt;
  if (value->is_array()) return static_cast<int64_t>(value->size());
  if (value->is_number_integer() && value->get<int64_t>() > 0) return value->get<int64_t>();
  if (!value->is_string()) return std::nullopt;
  const std::string& text = value->get_ref<const std::string&>();
  if (whole_number(text)) return std::stoll(text);
  if (text.find(',') == std::string::npos) return std::nullopt;
  int64_t n = 0;
  for (std::string_view part : base::split(text, ',')) n += base::trim(part).empty() ? 0 : 1;
  return n;
}

// A trainer.* argument of the command replaces the configuration's.
bool overridden(const Situation& s, const std::string& name) {
  for (const UserLaunch& launch : user_launches(s))
    for (const host::Argument& a : host::read_arguments(launch.line->arguments))
      if (a.name == name) return true;
  return false;
}

void devices(const Situation& s, Findings& findings) {
  if (overridden(s, "trainer.devices") || overridden(s, "trainer.num_nodes")) return;
  for (const UserConfig& config : user_configs(s, "lightning")) {
    auto count = device_count(value_at(config.value, "trainer.devices"));
    const int64_t nodes = int_at(config.value, "trainer.num_nodes").value_or(1);
    if (!count || s.job.world < 1 || nodes < 1 || nodes > 100'000 || *count > 100'000 || *count * nodes == s.job.world) continue;
    std::string at = config.place(s, "trainer.devices");
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: {} devices × {} nodes = {}; the job has {} ranks on {} hosts", at, *count, nodes, *count * nodes, s.job.world,
                      s.hosts.size()),
          fmt::format("{}：{} 个设备 × {} 台 = {}；任务共 {} 台机器 {} 个 rank", at, *count, nodes, *count * nodes, s.hosts.size(),
                      s.job.world)},
         fmt::format("phalanx run -H {} -- python cli.py fit -c {} --trainer.devices={} --trainer.num_nodes={}", host_list(s),
                     base::shell_quote(shown(s, config.file.file->path)),
                     s.job.world / static_cast<int64_t>(std::max<size_t>(s.hosts.size(), 1)), s.hosts.size()));
  }
}

void device_list(const Situation& s, Findings& findings) {
  for (const UserConfig& config : user_configs(s, "lightning")) {
    const base::Json* value = value_at(config.value, "trainer.devices");
    if (!value || !value->is_array() || value->empty()) continue;
    std::vector<size_t> hosts;
    std::string visible;
    for (size_t h : config.file.hosts) {
      auto set = s.variable(h, "CUDA_VISIBLE_DEVICES");
      for (const UserLaunch& launch : user_launches(s))
        if (!set && launch.line->variables.count("CUDA_VISIBLE_DEVICES")) set = launch.line->variables.at("CUDA_VISIBLE_DEVICES");
      if (!set || set->empty()) continue;
      hosts.push_back(h);
      visible = *set;
    }
    if (hosts.empty()) continue;
    std::string at = config.place(s, "trainer.devices"), list = base::to_text(*value);
    tell(findings, s, hosts,
         {fmt::format("{}: devices: {} counts within CUDA_VISIBLE_DEVICES={}", at, list, visible),
          fmt::format("{}：devices: {} 是在 CUDA_VISIBLE_DEVICES={} 之内编号的", at, list, visible)});
  }
}

// "00:10:00", or a number of seconds.
std::optional<int64_t> seconds(const base::Json* value) {
  if (!value) return std::nullopt;
  if (value->is_number_integer()) return value->get<int64_t>();
  if (!value->is_string()) return std::nullopt;
  int64_t total = 0;
  for (std::string_view part : base::split(value->get_ref<const std::string&>(), ':')) {
    if (!whole_number(part) || total > 1'000'000) return std::nullopt;
    total = total * 60 + std::stoll(std::string(part));
  }
  return total;
}

void short_timeout(const Situation& s, Findings& findings) {
  if (s.job.world < 2) return;
  for (const UserConfig& config : user_configs(s, "lightning")) {
    const std::string key = "trainer.strategy.init_args.timeout";
    auto given = seconds(value_at(config.value, key));
    if (!given || *given > 600 || *given < 1) continue;
    std::string at = config.place(s, key);
    tell(findings, s, config.file.hosts,
         {fmt::format("{}: a rank is waited for {} s", at, *given), fmt::format("{}：等待一个 rank 最多 {} 秒", at, *given)},
         fmt::format("sed -i 's/timeout: .*/timeout: \"01:00:00\"/' {}", base::shell_quote(config.file.file->path)));
  }
}

constexpr Row kLightningRows[] = {
    {"CMD-LIGHTNING-DEVICES",
     Severity::kWarning,
     Group::kCommand,
     {"Lightning's devices × num_nodes is not the number of ranks", "Lightning 的 devices × num_nodes 与 rank 数不符"},
     {"Is devices × num_nodes the number of ranks that start?", "devices × num_nodes 是否等于要启动的 rank 数？"},
     {"\"ValueError: You set `devices=1` and `num_nodes=2` in Lightning, but the product (1 * 2) does not match the world size (8)\"; with "
      "WORLD_SIZE set by hand instead, a wait for ranks that never come.",
      "报 \"ValueError: You set `devices=1` and `num_nodes=2` in Lightning, but the product (1 * 2) does not match the world size (8)\"；"
      "若是手工设置的 WORLD_SIZE，则一直等不会出现的 rank。"},
     {"Set both to what starts.\n$ phalanx run -H <hosts> -- python <script> fit -c <config> --trainer.devices=4 --trainer.num_nodes=2",
      "按实际启动的数量设置。\n$ phalanx run -H <hosts> -- python <script> fit -c <config> --trainer.devices=4 --trainer.num_nodes=2"},
     "lightning/fabric/plugins/environments/torchelastic.py: validate_settings",
     devices},
    {"CMD-LIGHTNING-DEVICE-LIST",
     Severity::kNote,
     Group::kCommand,
     {"Lightning's device numbers count within CUDA_VISIBLE_DEVICES", "Lightning 的设备编号是 CUDA_VISIBLE_DEVICES 之内的编号"},
     {"Is a list of devices given while CUDA_VISIBLE_DEVICES is set?", "设置了 CUDA_VISIBLE_DEVICES 的同时是否又给了设备列表？"},
     {"devices: [0] is the first of the visible GPUs, not GPU 0 of nvidia-smi. A number that is not visible ends in \"You requested gpu: "
      "[2] But "
      "your machine only has: [0, 1]\".",
      "devices: [0] 指可见 GPU 中的第一块，不是 nvidia-smi 里的 GPU 0。编号超出可见范围会报 \"You requested gpu: [2] But your machine only "
      "has: [0, 1]\"。"},
     {"Choose cards in one place only.\n$ phalanx run -H <hosts> -- python <script> fit -c <config> --trainer.devices=auto",
      "只在一个地方选卡。\n$ phalanx run -H <hosts> -- python <script> fit -c <config> --trainer.devices=auto"},
     "lightning/fabric/utilities/device_parser.py",
     device_list},
    {"CMD-LIGHTNING-TIMEOUT",
     Severity::kNote,
     Group::kCommand,
     {"Lightning gives up on a slow rank soon", "Lightning 对慢 rank 的等待时间较短"},
     {"Is the strategy's timeout longer than the longest validation, save or preparation?",
      "strategy 的 timeout 是否长于最久的验证、保存或预处理？"},
     {"Ten minutes is NCCL's default. Data prepared by rank 0, a large checkpoint on a slow disk or a validation on one rank take longer: "
      "\"Watchdog "
      "caught collective operation timeout … Timeout(ms)=600000\".",
      "10 分钟是 NCCL 的默认值。rank 0 预处理数据、慢盘上保存大检查点、只在一个 rank 上做验证，都可能更久："
      "\"Watchdog caught collective operation timeout … Timeout(ms)=600000\"。"},
     {"Raise it where such work is real; a real hang then shows later.\n$ sed -i 's/timeout: .*/timeout: \"01:00:00\"/' <config>",
      "确有这类耗时操作就调大；代价是真正的卡死会更晚暴露。\n$ sed -i 's/timeout: .*/timeout: \"01:00:00\"/' <config>"},
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
     short_timeout},
};

}  // namespace

std::span<const Row> llamafactory_rows() { return kLlamafactoryRows; }
std::span<const Row> lightning_rows() { return kLightningRows; }

}  // namespace doctor
