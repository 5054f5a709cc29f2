#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "frontdoor/deepspeed_hosts.h"
#include "frontdoor/door.h"

namespace phalanx::frontdoor {
namespace {

using base::Status;
using words::tr;

constexpr const char* kDefaultHostfile = "/job/hostfile";

using base::usage;

// The hosts of --hostfile, or of /job/hostfile if it is there. Nothing: none is named, and this machine is meant.
Status take_hostfile(Door& door, const ReadFlags& read) {
  const GivenFlag* given = read.find("hostfile");
  if (given && !given->known)
    return usage(fmt::format("{}: the name of the hostfile is a variable that is not known here", typed_text(*given)),
                 "set the variable, or write the path");
  const std::string path = given ? given->value : kDefaultHostfile;
  TRY_ASSIGN(std::optional<std::string> text, door.around.file(path));
  if (!text && given)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} {}: there is no such file", given->typed, base::quote(path)))
        .because("DeepSpeed only warns, and trains on the GPUs of this machine alone")
        .with_hint("correct the path, or omit the option to use this machine");
  if (!text) return base::ok();
  TRY_ASSIGN(Hostfile file, parse_deepspeed_hostfile(*text, path));
  door.out.hosts = std::move(file.hosts);
  door.decide(given ? typed_text(*given) : path, fmt::format("-H with {} host(s)", door.out.hosts.size()),
              given ? words::Message{} : tr("DeepSpeed's default hostfile, and it is there"));
  for (const std::string& name : file.merged)
    door.warn(tr("{}: {} is named twice; its slots are added up", path, name), tr("DeepSpeed refuses such a file: name every host once"));
  for (const std::string& text_of_guess : file.guessed) door.warn(tr("{}, as DeepSpeed does", text_of_guess), tr("write the number alone"));
  return base::ok();
}

Status take_filters(Door& door, const ReadFlags& read) {
  const GivenFlag* include = read.find("include");
  const GivenFlag* exclude = read.find("exclude");
  if (include && include->value.empty()) include = nullptr;
  if (exclude && exclude->value.empty()) exclude = nullptr;
  if (include && exclude) return usage("--include and --exclude cannot be combined", "keep one of them");
  const GivenFlag* filter = include ? include : exclude;
  if (!filter) return base::ok();
  for (const char* other : {"num-nodes", "num-gpus"})
    if (const GivenFlag* count = read.find(other); count && count->value != "-1")
      return usage(fmt::format("{} and {} cannot be combined", filter->typed, count->typed), "keep one of them");
  if (door.out.hosts.empty()) {
    // DeepSpeed calls this machine localhost, and has no other host to name.
    if (filter->value.find('@') != std::string::npos || !filter->value.starts_with("localhost"))
      return usage(fmt::format("{} {}: no hosts are known", filter->typed, base::quote(filter->value)),
                   "name them with --hostfile, or with -H in front of deepspeed");
    door.out.hosts.push_back({"localhost", 0});
  }
  TRY_ASSIGN(door.out.hosts, filter_hosts(door.out.hosts, filter->value, include != nullptr));
  door.decide(typed_text(*filter), "-H, --include", tr("whole hosts without slots, as DeepSpeed documents it"));
  return base::ok();
}

// -1 is DeepSpeed's word for "not given".
base::Result<std::optional<int>> count_of(const ReadFlags& read, std::string_view name, int max) {
  const GivenFlag* given = read.find(name);
  if (!given || given->value == "-1" || !given->known) return std::optional<int>();
  TRY_ASSIGN(int count, number_of(*given, 1, max));
  return std::optional<int>(count);
}

Status take_nodes(Door& door, const ReadFlags& read) {
  TRY_ASSIGN(std::optional<int> nodes, count_of(read, "num-nodes", 65'536));
  TRY_ASSIGN(std::optional<int> least, count_of(read, "min-elastic-nodes", 65'536));
  TRY_ASSIGN(std::optional<int> most, count_of(read, "max-elastic-nodes", 65'536));
  const bool elastic = read.has("elastic-training");
  if (!elastic && (least || most))
    return usage("--min-elastic-nodes and --max-elastic-nodes need --elastic-training", "add --elastic-training");
  if (nodes)
    door.decide(typed_text(*read.find("num-nodes")), fmt::format("--nnodes {}", *nodes),
                door.out.hosts.empty() ? words::Message{} : tr("the first ones of the list"));
  door.out.nodes = nodes;
  if (!elastic) return base::ok();
  const int highest = most.value_or(nodes.value_or(static_cast<int>(std::max<size_t>(door.out.hosts.size(), 1))));
  const int lowest = least.value_or(1);
  if (lowest > highest) return usage("--min-elastic-nodes is larger than --max-elastic-nodes", "give a range MIN to MAX");
  door.out.nodes = highest;
  if (lowest < highest) door.out.least_nodes = lowest;
  door.decide("--elastic_training", lowest < highest ? fmt::format("--nnodes {}:{}", lowest, highest) : fmt::format("--nnodes {}", highest),
              tr("a lost host does not end the run while MIN are left; more than MAX are spares"));
  return base::ok();
}

Status take_gpus(Door& door, const ReadFlags& read) {
  TRY_ASSIGN(std::optional<int> gpus, count_of(read, "num-gpus", kMostSlots));
  if (gpus && !door.out.hosts.empty()) {
    for (Host& host : door.out.hosts) {
      if (*gpus > host.slots)
        door.warn(tr("{}: --num_gpus {} is more than its {} slot(s)", host.name, *gpus, host.slots), tr("DeepSpeed would not notice"));
      host.slots = *gpus;
    }
    door.decide(typed_text(*read.find("num-gpus")), fmt::format("{} slot(s) on every host", *gpus), tr("the GPUs 0 to N-1"));
  } else if (gpus) {
    door.out.ranks = std::to_string(*gpus);
    door.decide(typed_text(*read.find("num-gpus")), "--nproc-per-node " + door.out.ranks);
  } else if (door.out.hosts.empty()) {
    door.out.ranks = "auto";
    door.decide("--num-gpus", "--nproc-per-node auto", tr("not given: one rank per GPU"));
  }
  return base::ok();
}

// ~/.deepspeed_env, then ./.deepspeed_env, which counts where both set a name; DS_ENV_FILE gives another name. Only where DeepSpeed starts
// several hosts.
Status take_environment_files(Door& door) {
  std::string name = door.variable("DS_ENV_FILE").value_or(".deepspeed_env");
  std::vector<std::string> paths;
  if (name.starts_with("/")) paths.push_back(name);
  else if (auto home = door.around.variable("HOME")) paths.push_back(*home + "/" + name);
  if (!name.starts_with("/") && (paths.empty() || paths[0] != door.around.folder() + "/" + name)) paths.push_back(name);
  for (const std::string& path : paths) {
    TRY_ASSIGN(std::optional<std::string> text, door.around.file(path));
    if (!text) continue;
    if (!door.around.only_ours(path)) {
      door.warn(tr("{} is not used: another user can change it, and its variables could run programs as you", path),
                tr("if you trust it, name it: --env-file {} in front of deepspeed", path));
      continue;
    }
    door.out.environment_files.push_back(path);
    door.decide(path, "--env-file " + path, tr("DeepSpeed sets these variables on every host"));
    for (std::string_view line : base::split_lines(*text))
      if (base::trim(line).empty() || base::trim(line)[0] == '#') {
        door.warn(tr("{} has blank or comment lines, which DeepSpeed refuses", path), tr("nothing to do: Phalanx skips them"));
        break;
      }
  }
  return base::ok();
}

Status take_command(Door& door, const ReadFlags& read, const std::string& launcher) {
  if (read.rest.empty()) return usage("deepspeed needs a script", "phalanx deepspeed train.py");
  if (read.has("no-python") && read.has("module")) return usage("--module and --no_python cannot be combined", "keep one of them");
  const Start start = read.has("no-python") ? Start::kProgram : read.has("module") ? Start::kModule : Start::kScript;
  door.out.argv = command_of(start, door.python(launcher), read.rest);
  if (!read.has("no-local-rank")) {
    add_local_rank(door.out, start);
    door.decide("deepspeed", "--local_rank=${local_rank}", tr("DeepSpeed gives every process its local rank as an argument"));
  }
  if (const GivenFlag* venv = read.find("venv-script"); venv && venv->known) {
    std::vector<std::string> wrapped = {"bash", "-c", ". " + base::shell_quote(venv->value) + " && exec \"$@\"", "bash"};
    door.out.argv.insert(door.out.argv.begin(), wrapped.begin(), wrapped.end());
    door.decide(typed_text(*venv), "bash -c '. ...'", tr("read on every host before the command"));
  }
  return base::ok();
}

}  // namespace

Status deepspeed_door(Door& door, const std::string& launcher, std::span<const std::string> words) {
  TRY_ASSIGN(ReadFlags read, read_flags("deepspeed", deepspeed_flags(), true, words));
  TRY(answer_flags(door, "deepspeed", read));
  if (read.has("elastic-training") && !read.has("master-addr")) {
    door.warn(tr("DeepSpeed refuses --elastic_training without --master_addr"), tr("nothing to do: Phalanx chooses the address"));
  }
  if (const GivenFlag* rank = read.find("node-rank")) TRY(take_node_rank(door, *rank));
  TRY(take_hostfile(door, read));
  TRY(take_filters(door, read));
  TRY(take_nodes(door, read));
  TRY(take_gpus(door, read));
  if (door.out.hosts.size() > 1 || door.out.nodes.value_or(1) > 1 || read.has("force-multi")) TRY(take_environment_files(door));
  if (const GivenFlag* address = read.find("master-addr")) take_master_address(door, typed_text(*address), address->value, address->known);
  if (const GivenFlag* port = read.find("master-port")) TRY(take_master_port(door, *port));
  if (const GivenFlag* port = read.find("ssh-port"); port && port->known) {
    TRY_ASSIGN(int number, number_of(*port, 1, 65'535));
    door.out.ssh_options.push_back(fmt::format("Port={}", number));
    door.decide(typed_text(*port), fmt::format("--ssh-option Port={}", number));
  }
  if (const GivenFlag* folder = read.find("enable-each-rank-log"); folder && folder->known && folder->value != "None") {
    door.out.log_folder = folder->value;
    door.decide(typed_text(*folder), "--log-dir " + folder->value, tr("in Phalanx's layout: one directory per run, one file per rank"));
  }
  if (const GivenFlag* other = read.find("launcher"); other && base::to_lower(other->value) != "pdsh")
    door.warn(tr("{}: the ranks are not started by MPI or Slurm and get none of their variables", typed_text(*other)),
              tr("nothing to do, unless the script reads OMPI_*, PMI_* or SLURM_* itself"));
  door.out.quiet = read.has("quiet");
  return take_command(door, read, launcher);
}

}  // namespace phalanx::frontdoor
