// The environment of the ranks on one host, pure: what the host has, less what is stale, plus what the launcher sends.
// The block every framework accepts is described in docs/formats/environment.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/messages.h"

namespace phalanx::agent {

using Environment = std::map<std::string, std::string>;

// "K=V" strings; entries without '=' or with an empty name are dropped, the first of equals wins (as in getenv).
Environment parse_environment(const char* const* environ_block);
std::vector<std::string> to_strings(const Environment& environment);

// The host's environment for this job: without what matches job.unset (globs), then job.set; path_prefix put in
// front of PATH when `prefix_exists`.
Environment job_environment(Environment host, const wire::JobSpec& job, bool prefix_exists);

struct RankPlace {
  uint32_t cpus = 1;  // of the host, for OMP_NUM_THREADS
  uint32_t local_world = 1;
  std::string error_file;  // TORCHELASTIC_ERROR_FILE
  int event_fd = -1;       // PHALANX_EVENT_FD; -1: none
};
// One rank's environment: the job's, defaults it does not set (OMP_NUM_THREADS, PYTHONUNBUFFERED …), then spec.set.
Environment rank_environment(const Environment& job, const wire::RankSpec& spec, const RankPlace& place);

// The job's command for one rank: with local_rank_macro, every ${local_rank} is replaced.
std::vector<std::string> rank_arguments(const wire::JobSpec& job, uint32_t local_rank);

}  // namespace phalanx::agent
