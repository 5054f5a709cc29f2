#include "engine/comm/env.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "base/text.h"
#include "base/try.h"

namespace phalanx::engine::comm {
namespace {

constexpr const char* kHint =
    "start the program with `phalanx run --nproc-per-node 2 -- PROGRAM`, with `torchrun --nproc_per_node 2 --no_python PROGRAM`, or set "
    "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT on every rank";

base::Error wrong(const char* name, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} is invalid", name)).because(std::move(why));
}

// Of a launcher.
base::Result<int64_t> number(const Lookup& lookup, const char* name, int64_t min, int64_t max) {
  std::optional<std::string> text = lookup(name);
  if (!text)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} is not set", name))
        .because("this process was started as one rank of several (RANK or WORLD_SIZE is set)")
        .with_hint(kHint);
  auto value = base::parse_int(*text, min, max, base::ErrorKind::kConfig);
  if (!value.ok()) return wrong(name, value.error().message).with_hint(kHint);
  return value;
}

// Of the user; `otherwise` if it is not set.
base::Result<int64_t> setting(const Lookup& lookup, const char* name, int64_t min, int64_t max, int64_t otherwise) {
  std::optional<std::string> text = lookup(name);
  if (!text) return otherwise;
  auto value = base::parse_int(*text, min, max, base::ErrorKind::kConfig);
  if (!value.ok()) return wrong(name, value.error().message).with_hint(fmt::format("unset {}; it is {} then", name, otherwise));
  return value;
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

base::Result<RankEnv> read_rank_env(const Lookup& lookup) {
  RankEnv env;
  env.gloo_interfaces = lookup("GLOO_SOCKET_IFNAME").value_or("");
  TRY_ASSIGN(env.comm_timeout_s, setting(lookup, "PHALANX_COMM_TIMEOUT", 1, 7 * 24 * 3600, env.comm_timeout_s));
  TRY_ASSIGN(int64_t shared_memory, setting(lookup, "PHALANX_COMM_SHM", 0, 1, 1));
  env.comm_shared_memory = shared_memory == 1;
  TRY_ASSIGN(int64_t check, setting(lookup, "PHALANX_COMM_CHECK", 0, 1, 0));
  env.comm_check = check == 1;
  if (!lookup("RANK") && !lookup("WORLD_SIZE")) return env;

  constexpr int64_t kMaxWorld = 1 << 20;
  TRY_ASSIGN(int64_t world, number(lookup, "WORLD_SIZE", 1, kMaxWorld));
  TRY_ASSIGN(int64_t rank, number(lookup, "RANK", 0, world - 1));
  env.world = static_cast<int>(world);
  env.rank = static_cast<int>(rank);
  env.local_world = env.world;
  env.run = lookup("TORCHELASTIC_RUN_ID").value_or("");
  if (env.run == "none") env.run.clear();  // torchrun's, where none was given
  if (lookup("TORCHELASTIC_RESTART_COUNT")) {
    TRY_ASSIGN(env.restarts, number(lookup, "TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int64_t>::max()));
  }
  if (lookup("LOCAL_RANK")) {
    TRY_ASSIGN(int64_t local, number(lookup, "LOCAL_RANK", 0, kMaxWorld));
    env.local_rank = static_cast<int>(local);
  }
  if (lookup("LOCAL_WORLD_SIZE")) {
    TRY_ASSIGN(int64_t local_world, number(lookup, "LOCAL_WORLD_SIZE", 1, kMaxWorld));
    env.local_world = static_cast<int>(local_world);
  }
  if (env.world == 1) return env;  // nobody to meet

  std::optional<std::string> address = lookup("MASTER_ADDR");
  if (!address)
    return base::fail(base::ErrorKind::kConfig, "MASTER_ADDR is not set")
        .because(fmt::format("rank {} of {} needs MASTER_ADDR:MASTER_PORT for the rendezvous", env.rank, env.world))
        .with_hint(kHint);
  env.master_addr = *address;
  TRY_ASSIGN(int64_t port, number(lookup, "MASTER_PORT", 1, 65535));
  env.master_port = static_cast<uint16_t>(port);
  env.agent_store = lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (env.agent_store) env.attempt = env.restarts;
  return env;
}

}  // namespace phalanx::engine::comm
