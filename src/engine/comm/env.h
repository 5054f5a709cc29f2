// Where this rank stands among the others, read from the variables every PyTorch launcher sets. Pure.
//
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are what torch's env:// wants; LOCAL_RANK picks the GPU. With
// TORCHELASTIC_USE_AGENT_STORE=True the launcher serves the store, and no rank may host it; keys then live under
// /worker/attempt_<TORCHELASTIC_RESTART_COUNT> as in torch up to 2.3, so a restart never meets an older attempt's keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace phalanx::engine::comm {

struct RankEnv {
  int rank = 0;
  int world = 1;
  std::optional<int> local_rank;  // LOCAL_RANK; not needed on CPU
  int local_world = 1;            // LOCAL_WORLD_SIZE, else `world`: how many ranks may share this host's cores
  std::string master_addr;
  uint16_t master_port = 0;
  bool agent_store = false;
  int64_t attempt = 0;             // of the keys in the store
  std::string run;                 // TORCHELASTIC_RUN_ID; equal in all attempts of a run; empty: unknown
  int64_t restarts = 0;            // TORCHELASTIC_RESTART_COUNT
  std::string gloo_interfaces;     // GLOO_SOCKET_IFNAME: names separated by commas; "" lets the route to MASTER_ADDR decide
  int64_t comm_timeout_s = 1800;   // PHALANX_COMM_TIMEOUT: seconds that a collective operation may take
  bool comm_shared_memory = true;  // PHALANX_COMM_SHM=0: ranks of one host do without shared memory
  bool comm_check = false;         // PHALANX_COMM_CHECK=1: every call is compared with the other ranks' before it begins
};

// The value of a variable, nullopt when it is not set. An empty value counts as not set, as in torch.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

// None of RANK and WORLD_SIZE: one rank on its own. Otherwise what is missing or wrong is named (kConfig).
base::Result<RankEnv> read_rank_env(const Lookup& lookup);

}  // namespace phalanx::engine::comm
