#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/accelerate_config.h"
#include "frontdoor/accelerate_variables.h"
#include "frontdoor/deepspeed_hosts.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using base::Status;
using words::tr;

using base::usage;

// What accelerate calls args: the option where it is typed, else the key of the file.
class Values {
 public:
  Values(const ReadFlags& read, const AccelerateConfig& config, std::string path) : read_(read), config_(config), path_(std::move(path)) {}

  std::optional<GivenFlag> given(std::string_view name) const {
    if (const GivenFlag* typed = read_.find(name)) return *typed;
    auto found = config_.values.find(std::string(name));
    if (found == config_.values.end()) return std::nullopt;
    for (const PeerFlag& flag : accelerate_flags())
      if (flag.name() == name)
        return GivenFlag{&flag, fmt::format("{}:{}: {}", path_, config_.lines.at(found->first), base::replace_all(name, "-", "_")),
                         found->second, found->second.find("${") == std::string::npos};
    return std::nullopt;
  }
  // A switch on the line, or "True" in the file.
  bool on(std::string_view name) const {
    if (read_.has(name)) return true;
    auto found = config_.values.find(std::string(name));
    return found != config_.values.end() && base::to_lower(found->second) == "true";
  }
  std::string text(std::string_view name, std::string fallback = "") const {
    std::optional<GivenFlag> one = given(name);
    if (!one || !one->known) return fallback;
    return one->flag->takes_value ? one->value : one->value.empty() ? "True" : one->value;
  }
  std::string type() const {
    auto found = config_.values.find("distributed-type");
    return found == config_.values.end() ? "" : found->second;
  }
  const AccelerateConfig& config() const { return config_; }
  const ReadFlags& read() const { return read_; }
  const std::string& path() const { return path_; }  // of the file

 private:
  const ReadFlags& read_;
  const AccelerateConfig& config_;
  std::string path_;
};

struct Paradigm {
  bool cpu = false, deepspeed = false, fsdp = false, megatron = false, parallel = false;
};

// --config_file, else default_config.yaml of the cache, which accelerate applies without a word.
base::Result<std::string> find_config(Door& door, const ReadFlags& read, std::string& text) {
  if (const GivenFlag* given = read.find("config-file"); given && given->known) {
    TRY_ASSIGN(std::optional<std::string> content, door.around.file(given->value));
    if (!content)
      return base::fail(base::ErrorKind::kConfig, fmt::format("{} {}: there is no such file", given->typed, base::quote(given->value)))
          .with_hint("correct the path; accelerate config writes such a file");
    text = *content;
    door.decide(typed_text(*given), "", tr("read; options of the line override its keys"));
    return given->value;
  }
  if (read.has("cpu") || read.has("config-file")) return std::string();
  std::string folder;
  if (auto hub = door.around.variable("HF_HOME")) folder = *hub;
  else if (auto cache = door.around.variable("XDG_CACHE_HOME")) folder = *cache + "/huggingface";
  else folder = door.around.variable("HOME").value_or("") + "/.cache/huggingface";
  const std::string path = folder + "/accelerate/default_config.yaml";
  TRY_ASSIGN(std::optional<std::string> content, door.around.file(path));
  if (!content) return std::string();
  text = *content;
  door.decide(path, "", tr("accelerate's default configuration: it is applied because it is there"));
  return path;
}

Paradigm paradigm_of(const Values& values) {
  Paradigm out;
  const ReadFlags& read = values.read();
  const bool typed = read.has("multi-gpu") || read.has("use-deepspeed") || read.has("use-fsdp") || read.has("use-megatron-lm");
  const std::string type = typed ? "" : values.type();
  out.cpu = read.has("cpu") || values.type() == "MULTI_CPU";
  auto used_cpu = values.config().values.find("use-cpu");
  out.cpu = out.cpu || (used_cpu != values.config().values.end() && used_cpu->second == "True");
  out.deepspeed = !read.has("cpu") && (read.has("use-deepspeed") || type == "DEEPSPEED");
  out.fsdp = !read.has("cpu") && (read.has("use-fsdp") || type == "FSDP");
  out.megatron = !read.has("cpu") && (read.has("use-megatron-lm") || type == "MEGATRON_LM");
  out.parallel = read.has("use-parallelism-config") || (!typed && values.config().has_parallelism);
  return out;
}

// num_processes is the total of all machines; each gets the same share, rounded down.
Status take_counts(Door& door, const Values& values, const Paradigm& paradigm) {
  int machines = 1;
  if (std::optional<GivenFlag> given = values.given("num-machines"); given && given->known) {
    TRY_ASSIGN(machines, number_of(*given, 1, 65'536));
    door.out.nodes = machines;
    door.decide(typed_text(*given), fmt::format("--nnodes {}", machines));
  }
  std::optional<GivenFlag> total = values.given("num-processes");
  if (total && total->value == "-1" && !values.read().has("num-processes"))
    return base::fail(base::ErrorKind::kConfig, fmt::format("{}: -1 means that the line gives it", total->typed))
        .with_hint("add --num_processes N");
  if (!total && values.type() == "NO") {
    door.out.ranks = "1";
    door.decide("distributed_type: NO", "--nproc-per-node 1");
    return base::ok();
  }
  if (!total || !total->known) {
    door.out.ranks = "auto";
    door.decide("--num_processes", "--nproc-per-node auto", tr("not given: one rank per GPU"));
    if (machines > 1)
      door.warn(tr("--num_processes is not given: accelerate counts the GPUs of one machine and divides them by {} machines", machines),
                tr("nothing to do: Phalanx starts one rank per GPU of every host"));
    return base::ok();
  }
  TRY_ASSIGN(int processes, number_of(*total, 1, 4'096 * 1'024));
  const int each = processes / machines;
  if (each < 1 || each > 4'096)
    return usage(base::counted("{} {} for {} machines: {} ranks on each", total->typed, processes, machines, each),
                 "--num_processes is the total of all machines");
  door.out.ranks = std::to_string(each);
  door.decide(typed_text(*total), fmt::format("--nproc-per-node {}", each),
              machines > 1 ? tr("the total of {} machines: {} on each", machines, each) : words::Message{});
  if (each * machines != processes)
    door.warn(tr("{} processes do not divide by {} machines: accelerate starts {} in all", processes, machines, each * machines),
              tr("for hosts with different numbers of GPUs write --nproc-per-node gpu in front of accelerate"));
  if (paradigm.cpu && processes > 1)
    door.warn(tr("on CPUs accelerate launch starts one process, whatever --num_processes says; here {} ranks are started", processes),
              tr("write --num_processes 1 for one"));
  return base::ok();
}

// Whoever can change the default configuration must not choose the machines that get this user's code, secrets and logins.
Status check_who_names_hosts(const Door& door, const Values& values, const GivenFlag& file) {
  const bool typed = values.read().has(file.flag->name()) || values.read().has("config-file");
  if (typed || door.around.only_ours(values.path())) return base::ok();
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}: the hosts are not taken from this configuration", file.typed))
      .because("another user can change the file")
      .with_hint(fmt::format("if you trust it, name it: --config_file {}", base::shell_quote(values.path())));
}

// DeepSpeed's hosts, which accelerate hands to the deepspeed command (launcher pdsh and its kin; "standard" and "nossh" name none).
Status take_hosts(Door& door, const Values& values, const Paradigm& paradigm) {
  if (std::optional<GivenFlag> file = values.given("mpirun-hostfile"); file && file->known) {
    TRY(check_who_names_hosts(door, values, *file));
    door.out.hostfile = file->value;
    door.decide(typed_text(*file), "--hostfile " + file->value);
  }
  if (!paradigm.deepspeed || door.out.nodes.value_or(1) < 2) return base::ok();
  const std::string launcher = values.text("deepspeed-multinode-launcher", "pdsh");
  std::optional<GivenFlag> file = values.given("deepspeed-hostfile");
  if (launcher == "standard" || launcher == "nossh") {
    door.decide("deepspeed_multinode_launcher: " + launcher, "", tr("a line per machine; with the hosts named once, Phalanx starts all"));
    return base::ok();
  }
  if (!file || !file->known) {
    door.warn(tr("launcher {} without deepspeed_hostfile: DeepSpeed would warn and train on this machine alone", launcher),
              tr("name the hosts: -H HOST:SLOTS,... in front of accelerate"));
    return base::ok();
  }
  TRY(check_who_names_hosts(door, values, *file));
  TRY_ASSIGN(std::optional<std::string> text, door.around.file(file->value));
  if (!text)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{}: there is no file {}", file->typed, base::quote(file->value)))
        .because("DeepSpeed only warns, and trains on the GPUs of this machine alone")
        .with_hint("correct the path");
  TRY_ASSIGN(Hostfile hosts, parse_deepspeed_hostfile(*text, file->value));
  door.out.hosts = std::move(hosts.hosts);
  door.decide(typed_text(*file), fmt::format("-H with {} host(s)", door.out.hosts.size()));
  for (const std::string& name : hosts.merged)
    door.warn(tr("{}: {} is named twice; its slots are added up", file->value, name),
              tr("DeepSpeed refuses such a file: name every host once"));
  for (bool include : {false, true}) {
    std::optional<GivenFlag> filter = values.given(include ? "deepspeed-inclusion-filter" : "deepspeed-exclusion-filter");
    if (!filter || filter->value.empty()) continue;
    TRY_ASSIGN(door.out.hosts, filter_hosts(door.out.hosts, filter->value, include));
    door.decide(typed_text(*filter), "-H, --include");
    door.out.ranks.clear();
    return base::ok();
  }
  return base::ok();
}

// "0,2" → each rank of the host sees these.
void take_gpus(Door& door, const Values& values) {
  std::optional<GivenFlag> ids = values.given("gpu-ids");
  if (!ids || ids->value == "all" || !ids->known) return;
  door.set("CUDA_VISIBLE_DEVICES", ids->value);
  door.decide(typed_text(*ids), "--env CUDA_VISIBLE_DEVICES=" + ids->value, tr("on every host"));
}

bool applies(Group group, const Paradigm& paradigm, const Values& values) {
  switch (group) {
    case Group::kDynamo: return !paradigm.deepspeed;
    case Group::kFsdp: return paradigm.fsdp;
    case Group::kDeepSpeed: return paradigm.deepspeed;
    case Group::kMegatron: return paradigm.megatron;
    case Group::kParallel: return paradigm.parallel;
    case Group::kContextParallel: return paradigm.parallel && values.text("parallelism-config-cp-size", "1") != "1";
    case Group::kSequenceParallel: return paradigm.parallel && values.text("parallelism-config-sp-size", "1") != "1";
    case Group::kFp8: return values.text("mixed-precision") == "fp8";
  }
  return false;
}

void take_group_variables(Door& door, const Values& values, const Paradigm& paradigm) {
  for (const AccelerateVariable& one : accelerate_variables()) {
    std::optional<GivenFlag> given = values.given(one.flag);
    if (!applies(one.group, paradigm, values)) {
      const bool typed = values.read().has(one.flag);
      if (typed)
        door.warn(tr("{} has no effect: what it belongs to is not switched on", given->typed),
                  tr("add --use_fsdp, --use_deepspeed, --use_megatron_lm, --use_parallelism_config or --mixed_precision fp8"));
      if (typed) door.decide(typed_text(*given), "", tr("what it belongs to is not switched on"));
      continue;
    }
    std::string value = values.text(one.flag, std::string(one.fallback));
    if (value.empty()) continue;
    value = one.spelling == Spelling::kLower ? base::to_lower(value) : one.spelling == Spelling::kUpper ? base::to_upper(value) : value;
    door.set(std::string(one.variable), value);
    if (given) door.decide(typed_text(*given), fmt::format("--env {}={}", one.variable, value));
  }
}

Status take_precision(Door& door, const Values& values) {
  const std::string precision = base::to_lower(values.text("mixed-precision", "no"));
  if (precision != "no" && precision != "fp16" && precision != "bf16" && precision != "fp8")
    return usage(fmt::format("mixed precision {} is unknown", base::quote(precision)), "write no, fp16, bf16 or fp8");
  door.set("ACCELERATE_MIXED_PRECISION", precision);
  if (std::optional<GivenFlag> given = values.given("mixed-precision"))
    door.decide(typed_text(*given), "--env ACCELERATE_MIXED_PRECISION=" + precision);
  if (std::optional<GivenFlag> given = values.given("fp8-override-linear-precision"); given && precision == "fp8") {
    const std::string list = given->value;
    const std::vector<std::string_view> three = base::split(list, ',');
    if (three.size() != 3) return usage(fmt::format("{} {}: not three values", given->typed, base::quote(list)), "write true,false,false");
    const char* names[] = {"FPROP", "DGRAD", "WGRAD"};
    for (size_t i = 0; i < 3; ++i)
      door.set(fmt::format("ACCELERATE_FP8_OVERRIDE_{}", names[i]), base::to_lower(base::trim(three[i])) == "true" ? "True" : "False");
    door.decide(typed_text(*given), "--env ACCELERATE_FP8_OVERRIDE_FPROP, _DGRAD, _WGRAD");
  } else if (given) {
    door.decide(typed_text(*given), "", tr("what it belongs to is not switched on"));
  }
  return base::ok();
}

// OpenMP's pinning is right for the one process that accelerate starts on CPUs; several ranks would all be pinned to the same CPUs.
void take_cpu(Door& door, const Paradigm& paradigm) {
  if (!paradigm.cpu) return;
  door.set("ACCELERATE_USE_CPU", "True");
  door.decide("--cpu", "--env ACCELERATE_USE_CPU=True");
  if (door.out.ranks == "1") {
    door.set("KMP_AFFINITY", "granularity=fine,compact,1,0");
    door.set("KMP_BLOCKTIME", "1");
  } else {
    door.warn(tr("accelerate sets KMP_AFFINITY=granularity=fine,compact,1,0 on CPUs: several ranks of a host would share the same CPUs"),
              tr("nothing to do: Phalanx leaves it out where a host has several ranks"));
  }
}

void take_threads(Door& door, const Values& values) {
  if (std::optional<GivenFlag> threads = values.given("num-cpu-threads-per-process"); threads && threads->known) {
    door.set("OMP_NUM_THREADS", threads->value);
    door.decide(typed_text(*threads), "--env OMP_NUM_THREADS=" + threads->value);
  } else {
    door.decide("--num_cpu_threads_per_process", "",
                tr("not given: accelerate sets OMP_NUM_THREADS=1, Phalanx divides the host's CPUs among its ranks"));
  }
}

void take_paradigm(Door& door, const Values& values, const Paradigm& paradigm) {
  if (paradigm.fsdp) door.set("ACCELERATE_USE_FSDP", "true");
  if (paradigm.megatron) door.set("ACCELERATE_USE_MEGATRON_LM", "true");
  if (paradigm.parallel) door.set("ACCELERATE_USE_PARALLELISM_CONFIG", "true");
  if (paradigm.deepspeed) {
    std::vector<std::string> fields = values.config().deepspeed_fields;
    if (!values.read().has("mixed-precision") && values.given("mixed-precision")) fields.push_back("mixed_precision");
    door.set("ACCELERATE_USE_DEEPSPEED", "true");
    door.set("ACCELERATE_CONFIG_DS_FIELDS", base::to_lower(base::join(fields, ",")));
    const std::string before = door.variable("PYTHONPATH").value_or("");
    door.set("PYTHONPATH", before.empty() ? door.around.folder() : before + ":" + door.around.folder());
  }
  const std::pair<bool, std::string_view> kinds[] = {{paradigm.deepspeed, "ACCELERATE_USE_DEEPSPEED"},
                                                     {paradigm.fsdp, "ACCELERATE_USE_FSDP"},
                                                     {paradigm.megatron, "ACCELERATE_USE_MEGATRON_LM"},
                                                     {paradigm.parallel, "ACCELERATE_USE_PARALLELISM_CONFIG"}};
  for (const auto& [on, variable] : kinds)
    if (on) door.decide("accelerate", fmt::format("--env {}=true", variable));
  if (values.on("debug")) door.set("ACCELERATE_DEBUG_MODE", "true");
  if (values.on("enable-cpu-affinity")) door.set("ACCELERATE_CPU_AFFINITY", "1");
}

// Keys of the file that mean nothing here; where an option overrides one, the option is answered.
void say_meaningless_keys(Door& door, const ReadFlags& read, const AccelerateConfig& config, const std::string& path) {
  for (std::span<const PeerFlag> rows : {accelerate_keys(), accelerate_flags()})
    for (const PeerFlag& row : rows) {
      const std::string name = base::replace_all(row.name(), "_", "-");
      auto found = config.values.find(name);
      if (row.answer != Answer::kMeaningless || found == config.values.end() || read.has(row.name())) continue;
      door.decide(fmt::format("{}:{}: {}: {}", path, config.lines.at(name), base::replace_all(name, "-", "_"), found->second), "",
                  message_of(row.why));
    }
}

Status check_switches(const ReadFlags& read) {
  std::string first;
  for (const char* name : {"cpu", "multi-gpu", "use-deepspeed", "use-fsdp"}) {
    const GivenFlag* given = read.find(name);
    if (given && !first.empty()) return usage(fmt::format("{} and {} cannot be combined", first, given->typed), "keep one of them");
    if (given) first = given->typed;
  }
  if (read.has("module") && read.has("no-python")) return usage("--module and --no_python cannot be combined", "keep one of them");
  return base::ok();
}

Status take_rendezvous(Door& door, const Values& values) {
  if (std::optional<GivenFlag> address = values.given("main-process-ip"))
    take_master_address(door, typed_text(*address), address->value, address->known);
  if (std::optional<GivenFlag> port = values.given("main-process-port")) TRY(take_master_port(door, *port));
  if (std::optional<GivenFlag> restarts = values.given("max-restarts"); restarts && restarts->known) {
    TRY_ASSIGN(int number, number_of(*restarts, 0, 10'000));
    door.out.restarts = number;
    door.decide(typed_text(*restarts), fmt::format("--max-restarts {}", number));
  }
  std::optional<GivenFlag> rank = values.given("machine-rank");
  if (rank && (door.out.nodes.value_or(1) > 1 || values.read().has("machine-rank"))) TRY(take_node_rank(door, *rank));
  if (rank && !rank->known && rank->value.find("RANK}") != std::string::npos && rank->value.find("{RANK}") != std::string::npos)
    door.warn(tr("{}: on platforms where RANK numbers processes, it is not the number of the machine", typed_text(*rank)),
              tr("nothing to do: Phalanx numbers the hosts itself"));
  return base::ok();
}

}  // namespace

Status accelerate_door(Door& door, const std::string& launcher, std::span<const std::string> words) {
  const bool verb = door.out.peer == "accelerate" || door.out.peer.ends_with("accelerate") || door.out.peer.ends_with("accelerate_cli");
  if (verb && (words.empty() || words[0] != "launch"))
    return usage(words.empty() ? "accelerate needs a verb" : fmt::format("accelerate {} starts no training", base::quote(words[0])),
                 "phalanx accelerate launch train.py; run the other verbs of accelerate without phalanx");
  TRY_ASSIGN(ReadFlags read, read_flags("accelerate launch", accelerate_flags(), false, words.subspan(verb ? 1 : 0)));
  TRY(answer_flags(door, "accelerate launch", read));
  TRY(check_switches(read));
  std::string text;
  TRY_ASSIGN(std::string path, find_config(door, read, text));
  AccelerateConfig config;
  if (!path.empty()) { TRY_ASSIGN(config, parse_accelerate_config(text, path)); }
  for (const std::string& key : config.unused)
    door.warn(tr("{}: accelerate does not read this key", key), tr("remove it, or correct its name"));
  say_meaningless_keys(door, read, config, path);
  const Values values(read, config, path);
  const Paradigm paradigm = paradigm_of(values);
  TRY(take_counts(door, values, paradigm));
  TRY(take_hosts(door, values, paradigm));
  TRY(take_rendezvous(door, values));
  take_gpus(door, values);
  take_paradigm(door, values, paradigm);
  TRY(take_precision(door, values));
  take_group_variables(door, values, paradigm);
  take_cpu(door, paradigm);
  take_threads(door, values);
  take_log_folder(door, read.find("log-dir"));
  TRY(take_streams(door, nullptr, read.find("tee"), nullptr));
  door.out.quiet = read.has("quiet");
  if (read.rest.empty()) return usage("accelerate launch needs a script", "phalanx accelerate launch train.py");
  const Start start = read.has("no-python") ? Start::kProgram : read.has("module") ? Start::kModule : Start::kScript;
  door.out.argv = command_of(start, door.python(launcher), read.rest);
  return base::ok();
}

}  // namespace phalanx::frontdoor
