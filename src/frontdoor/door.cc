#include "frontdoor/door.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::frontdoor {
namespace {

using words::Text;
using words::tr;

// Variables that describe a launcher's own job: they are read, or said to be of no use, and never passed on.
constexpr std::array kOfLaunchers = {"RANK",         "LOCAL_RANK",     "WORLD_SIZE",     "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK",
                                     "NNODES",       "NPROC_PER_NODE", "MASTER_ADDR",    "MASTER_PORT",      "MIN_NNODES", "MAX_NNODES",
                                     "MAX_RESTARTS", "RDZV_ID",        "FORCE_TORCHRUN", "PYTHON_EXEC",      "DS_ENV_FILE"};

struct Setting {
  std::string_view name;
  std::string_view value;  // "": any
  Text says;
};
// What the field notes set and should not keep, as far as the line alone tells. What the hosts say comes from the checks before the start.
constexpr Setting kSettings[] = {
    {"NCCL_IB_DISABLE", "1",
     Text{"NCCL_IB_DISABLE=1 turns InfiniBand and RoCE off; on hosts that have them, traffic between hosts is slower"}},
    {"NCCL_P2P_DISABLE", "1", Text{"NCCL_P2P_DISABLE=1 sends traffic between the GPUs of a host through its memory; NVLink is not used"}},
    {"NCCL_SHM_DISABLE", "1",
     Text{"NCCL_SHM_DISABLE=1 does not choose P2P, as is often written: it sends traffic within a host over the network"}},
    {"NCCL_BLOCKING_WAIT", "", Text{"NCCL_BLOCKING_WAIT is deprecated; PyTorch reads TORCH_NCCL_BLOCKING_WAIT"}},
    {"TORCH_NCCL_BLOCKING_WAIT", "1", Text{"TORCH_NCCL_BLOCKING_WAIT=1 makes every collective wait; it is for debugging and costs speed"}},
    {"NCCL_ASYNC_ERROR_HANDLING", "", Text{"NCCL_ASYNC_ERROR_HANDLING is deprecated; PyTorch reads TORCH_NCCL_ASYNC_ERROR_HANDLING"}},
};

bool is_loopback(std::string_view address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1" || address == "0.0.0.0";
}

// "MASTER_IP", "<ip>", "x.x.x.x", "your_ip": what a manual puts where an address belongs.
bool is_placeholder(std::string_view address) {
  bool plain = true, small = false;
  for (char c : address) {
    plain = plain &&
            ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == ':' || c == '_');
    small = small || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  }
  if (!plain || address.starts_with("x.x") || address.starts_with("your")) return true;
  return !small && address.find('_') != std::string_view::npos;
}

}  // namespace

std::optional<std::string> Door::variable(const std::string& name) const {
  for (auto it = line.prefix.rbegin(); it != line.prefix.rend(); ++it)
    if (it->first == name) return it->second;
  return around.variable(name);
}

bool Door::in_prefix(std::string_view name) const {
  return std::any_of(line.prefix.begin(), line.prefix.end(), [&](const auto& one) { return one.first == name; });
}

void Door::set(std::string name, std::string value) {
  for (auto& [known, old] : out.environment)
    if (known == name) {
      old = std::move(value);
      return;
    }
  out.environment.emplace_back(std::move(name), std::move(value));
}

std::string Door::python(std::string_view launcher) const {
  const size_t slash = launcher.rfind('/');
  if (slash != std::string_view::npos) return std::string(launcher.substr(0, slash + 1)) + "python";
  return around.has_program("python") || !around.has_program("python3") ? "python" : "python3";
}

words::Message message_of(const Text& text) { return {std::string(text.english), std::string(text.in(words::Language::kChinese))}; }

std::string typed_text(const GivenFlag& given) {
  if (!given.flag->takes_value) return given.typed;
  const bool in_file = given.typed.find(": ") != std::string::npos;
  return given.typed + (given.typed.starts_with("-") ? " " : in_file ? ": " : "=") + given.value;
}

base::Result<int> number_of(const GivenFlag& given, int min, int max) {
  base::Result<int64_t> number = base::parse_int(given.value, min, max);
  if (number.ok()) return static_cast<int>(*number);
  base::Error error = std::move(number).error();
  error.message = fmt::format("{}: {}", given.typed, error.message);
  return error;
}

base::Status answer_flags(Door& door, std::string_view peer, const ReadFlags& read) {
  for (const GivenFlag& given : read.flags) {
    if (given.flag->answer == Answer::kRejected)
      return base::fail(base::ErrorKind::kUsage, fmt::format("{} {} cannot be used here", peer, given.typed))
          .because(std::string(given.flag->why.english));
    if (given.flag->answer == Answer::kMeaningless) {
      door.decide(typed_text(given), "", message_of(given.flag->why));
    } else if (!given.known && given.flag->becomes != "--node-rank") {  // which is of use only where it is known
      door.decide(typed_text(given), "", tr("a variable whose value is not known here"));
      door.warn(tr("{}: the value is a variable that is not known here; the option has no effect", typed_text(given)),
                tr("set the variable in front of the command, or write its value"));
    }
  }
  return base::ok();
}

void take_master_address(Door& door, const std::string& from, const std::string& value, bool known) {
  if (!known || value.empty()) return;
  if (is_loopback(value)) {
    door.decide(from, "", tr("this machine; Phalanx chooses an address that every host reaches"));
    if (door.out.nodes.value_or(1) > 1)
      door.warn(tr("{} is each host itself: with {} nodes, every node would wait for the others at its own address", value,
                   door.out.nodes.value_or(1)),
                tr("nothing to do: Phalanx chooses the address"));
    return;
  }
  if (is_placeholder(value)) {
    door.decide(from, "", tr("a placeholder; Phalanx chooses the address"));
    door.warn(tr("{} is a placeholder, not an address", base::quote(value)), tr("nothing to do: Phalanx chooses the address"));
    return;
  }
  door.out.master_address = value;
  door.decide(from, "--master-addr " + value);
}

base::Status take_master_port(Door& door, const GivenFlag& given) {
  if (!given.known || given.value.empty()) return base::ok();
  TRY_ASSIGN(int port, number_of(given, 0, 65'535));
  if (port == 0) {
    door.decide(typed_text(given), "", tr("any free port"));
    return base::ok();
  }
  door.out.master_port = port;
  door.decide(typed_text(given), fmt::format("--master-port {}", port));
  return base::ok();
}

std::vector<std::string> command_of(Start start, const std::string& python, std::vector<std::string> rest) {
  std::vector<std::string> argv;
  if (start != Start::kProgram) argv.push_back(python);
  if (start == Start::kModule) argv.push_back("-m");
  argv.insert(argv.end(), rest.begin(), rest.end());
  return argv;
}

void add_local_rank(Translation& out, Start start) {
  const size_t script = start == Start::kProgram ? 0 : start == Start::kModule ? 2 : 1;
  out.argv.insert(out.argv.begin() + static_cast<ptrdiff_t>(std::min(script + 1, out.argv.size())), "--local_rank=${local_rank}");
  out.local_rank_macro = true;
}

namespace {

// That a variable in front of the line comes to nothing is said, unless the door has said what becomes of it.
void say_unread(Door& door, Peer peer, const std::string& name) {
  for (const PeerFlag& row : variables_of(peer))
    if (row.names == name) return;
  const bool said = std::any_of(door.out.decisions.begin(), door.out.decisions.end(),
                                [&](const Decision& one) { return one.from == name || one.from.starts_with(name + "="); });
  if (!said) door.decide(name, "", tr("{} does not read it", door.out.peer));
}

}  // namespace

void finish(Door& door, Peer peer) {
  find_progress_file(door);
  for (const auto& [name, value] : door.line.prefix) {
    const bool known = value.find("${") == std::string::npos;
    if (is_answered(peer, name) || name.starts_with("PET_")) continue;
    if (std::find(kOfLaunchers.begin(), kOfLaunchers.end(), name) != kOfLaunchers.end()) {
      if (peer == Peer::kAccelerate || peer == Peer::kDeepSpeed) say_unread(door, peer, name);
      continue;
    }
    if (!known) {
      door.decide(name, "", tr("a variable whose value is not known here"));
      door.warn(tr("{}: its value is not known here; the variable is not set", name), tr("write its value in front of the command"));
      continue;
    }
    door.set(name, value);
    door.decide(name, "--env " + name, tr("in front of the command"));
  }
  for (const auto& [name, value] : door.out.environment)
    for (const Setting& setting : kSettings)
      if (setting.name == name && (setting.value.empty() || setting.value == value)) door.warn(message_of(setting.says));
  std::optional<std::string> devices;
  for (const auto& [name, value] : door.out.environment)
    if (name == "CUDA_VISIBLE_DEVICES") devices = value;
  base::Result<int64_t> ranks = base::parse_int(door.out.ranks, 1, 4'096);
  if (!devices || devices->empty()) return;
  const auto count = static_cast<int64_t>(std::count(devices->begin(), devices->end(), ',') + 1);
  if (ranks.ok() && *ranks > count)
    door.warn(tr("{} ranks per host, but CUDA_VISIBLE_DEVICES={} shows {} GPU(s)", *ranks, *devices, count),
              tr("give as many ranks as GPUs, or name more GPUs"));
  if (door.out.nodes.value_or(1) > 1)
    door.warn(tr("CUDA_VISIBLE_DEVICES={} applies to every host; hosts with other GPUs need a list of their own", *devices),
              tr("omit it, or name the GPUs per host with --gpus HOST:INDEX,...@..."));
}

}  // namespace phalanx::frontdoor
