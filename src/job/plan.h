// The plan: which rank runs where, with which variables. Pure arithmetic over the job and what each host said.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/choose/choose.h"
#include "job/job.h"
#include "wire/messages.h"

namespace phalanx::doctor {
struct Situation;
}

namespace phalanx::job {

struct PlannedHost {
  std::string name;
  int first_rank = 0;
  int ranks = 0;                // local world size, at least 1
  std::string why;              // where the number comes from: "slots=4 in hosts.txt", "2 GPUs", "no GPU"
  wire::Variables chosen;       // by the checks, for all ranks of the host
  std::string visible_devices;  // CUDA_VISIBLE_DEVICES to set; empty: the host's own
};

struct Plan {
  std::vector<PlannedHost> hosts;  // in the order of the host list
  int world = 0;
  int host_of(int rank) const;
  int local_rank(int rank) const { return rank - hosts[static_cast<size_t>(host_of(rank))].first_rank; }
};

// Ranks are numbered host by host in the order of the host list, local ranks by position. Error kUnfit names a host that
// cannot have a rank (asked for GPUs and has none, a selected slot it does not have).
// choices: what the checks have chosen, if they were made: where the number of ranks follows from the GPUs, it follows from those.
base::Result<Plan> make_plan(const Job& job, const std::vector<wire::Hello>& hosts, const std::optional<Choices>& choices = std::nullopt);

// The ranks that a host is to have, by --nproc-per-node or its slots; 0: no number was given.
int ranks_asked(const Job& job, const HostRequest& host);
// Whether GPUs were asked for, or are the default because hosts have some. Not where the user hides them from the program. Nor for a
// program that takes CPUs by itself, if every host that was probed has fewer GPUs than ranks; a shortage on some of them is none, for
// ranks on CPUs cannot work with ranks on GPUs.
bool wants_gpus(const Job& job, const doctor::Situation& situation);

// Where the ranks meet.
struct Meeting {
  std::string address;  // MASTER_ADDR, numeric, of rank 0's host
  int port = 0;         // MASTER_PORT
  bool served = true;   // by our store; else rank 0 serves it
};

// The block every framework accepts (docs/formats/environment.md), for one rank.
wire::Variables rank_variables(const Job& job, const Plan& plan, int rank, const Meeting& meeting);
// What a host's ranks get unless the user has set it, where no checks were made: the interface that reaches the meeting point.
wire::Variables host_defaults(const Plan& plan, const std::string& interface);
// The checks have settled which interface the ranks of this host use.
bool interface_chosen(const std::optional<Choices>& choices, size_t host);
// The cpulist a rank is bound to; empty: it is not.
std::string bound_cpus(const std::optional<Choices>& choices, size_t host, int local_rank);

// Addresses of rank 0's host to try as MASTER_ADDR, best first: the one asked for, unless it is a name (the checks hold that a name is that
// host's); the one chosen; the one the launcher came in on; the one the other hosts know the launcher by, if rank 0's host is this
// machine; all others, IPv4 first. One host alone: 127.0.0.1.
std::vector<std::string> meeting_addresses(const Job& job, const std::vector<wire::Hello>& hosts,
                                           const std::optional<Choices>& choices = std::nullopt);

}  // namespace phalanx::job
