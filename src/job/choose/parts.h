// Inside choose(): its parts, each in a file of its own, in the order in which they run. Each adds to the Choices and reads what
// the parts before it have added.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/choose/choose.h"

namespace phalanx::job {

void choose_gpus(const doctor::Situation& situation, const GpuRequest& wish, Choices& choices);
void choose_address(const doctor::Situation& situation, const GpuRequest& wish, const Network& network, Choices& choices);
void choose_interfaces(const doctor::Situation& situation, const GpuRequest& wish, const Network& network, Choices& choices);
void choose_infiniband(const doctor::Situation& situation, Choices& choices);
void choose_p2p(const doctor::Situation& situation, Choices& choices);
void choose_threads(const doctor::Situation& situation, const GpuRequest& wish, Choices& choices);
void choose_cpus(const doctor::Situation& situation, const GpuRequest& wish, Choices& choices);

// On how many hosts an address is.
std::map<std::string, int> owners(const doctor::Situation& situation);
// Interfaces of a host that have an address and lead to no other host: docker0, virbr0, addresses that several hosts have.
std::vector<std::string> decoys(const doctor::Situation& situation, size_t host, const std::map<std::string, int>& owners);

// What the user has set for a rank of that host: a variable, or for NCCL_* a line of NCCL's configuration file.
std::optional<std::string> users_word(const doctor::Situation& situation, size_t host, const std::string& name);

// Ranks of a host as far as they are known: one per chosen GPU, else what was asked for, else what is planned.
int ranks_on(const doctor::Situation& situation, const GpuRequest& wish, const Choices& choices, size_t host);

// Names of hosts for a sentence: "gpu01", "gpu01 and gpu02", "gpu01, gpu02 and 6 more".
doctor::Words host_names(const doctor::Situation& situation, const std::vector<size_t>& hosts);

// Why a GPU can serve no rank; none: it can.
std::optional<doctor::Words> unfit(const machine::Gpu& gpu, const machine::SoftwareFacts& software);
// Who else computes on it; none: it is free.
std::optional<doctor::Words> busy(const machine::Gpu& gpu);
// "NVIDIA A100-SXM4-80GB, 8.0, 80 GiB": two GPUs of which this is the same may be in one job and neither waits.
std::string model_of(const machine::Gpu& gpu);

}  // namespace phalanx::job
