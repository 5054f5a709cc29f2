// What `plan` and `run` choose where the user has not: which GPUs, over which addresses the ranks meet, which variables they get.
// A pure function of the situation; every choice comes with its reason. What a default does right is not set; what the user
// has set wins, and is told if it harms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/situation.h"

namespace phalanx::job {

// --gpus: auto, a number for every host, or lists by host; and --iface.
struct GpuRequest {
  std::optional<int> count;                                     // --gpus 4
  std::vector<std::pair<std::string, std::vector<int>>> lists;  // --gpus gpu01:0,2; host name → NVML indices
  std::vector<int> ranks;  // per host what slots= or --nproc-per-node ask for; 0 or missing: as many as are fit
  std::string interface;   // --iface; empty: chosen
};

struct Setting {
  std::string name, value;
  doctor::Words why;
};

struct HostChoice {
  bool has_gpus = false;   // GPUs were looked for and found: `gpus` says which are used
  std::vector<int> gpus;   // NVML indices (PCI bus order), one per local rank
  doctor::Words gpus_why;  // "2 of 3: the RTX 3090s; GPU 1 (GT 1030, 6.1) is another architecture"
  std::string interface, address;
  doctor::Words address_why;
  // For all ranks of the host, over what it has: a name that the user has set is here only for CUDA_VISIBLE_DEVICES and
  // CUDA_DEVICE_ORDER, which then name the same cards in PCI order.
  std::vector<Setting> settings;
  std::vector<std::string> rank_cpus;  // per local rank a cpulist, "0-15"; empty: not bound
  doctor::Words cpus_why;
};

struct Choices {
  std::vector<HostChoice> hosts;        // as in the situation
  std::vector<doctor::Words> remarks;   // on what the user has set, and on what could not be had
  std::vector<doctor::Words> refusals;  // what was asked for and is not there: run ends with them, exit 3
};

// The networks that all hosts share, best first: each an address per host (and its interface). What the mesh test tries.
struct Network {
  std::vector<std::string> addresses;   // per host
  std::vector<std::string> interfaces;  // per host
  int64_t speed_mbps = 0;               // of the slowest, 0: unknown
  std::string name;                     // "192.168.20.0/24"; empty: routed
  bool routed = false;                  // no subnet is common: the source address of each host on its way to the others
};
std::vector<Network> shared_networks(const doctor::Situation& situation, const std::string& wanted_interface);

// network: the one that held in the mesh test (or the first, where none was run); its addresses become the hosts'.
Choices choose(const doctor::Situation& situation, const GpuRequest& wish, const Network& network);

}  // namespace phalanx::job
