#include "agent/ranks/environment.h"

#include <algorithm>

#include "base/glob.h"
#include "base/text.h"
#include "machine/ranks/threads.h"
#include "wire/rank_event.h"

namespace phalanx::agent {

Environment parse_environment(const char* const* environ_block) {
  Environment out;
  for (const char* const* e = environ_block; e && *e; ++e) {
    std::string entry(*e);
    size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

std::vector<std::string> to_strings(const Environment& environment) {
  std::vector<std::string> out;
  out.reserve(environment.size());
  for (const auto& [name, value] : environment) out.push_back(name + "=" + value);
  return out;
}

Environment job_environment(Environment host, const wire::JobSpec& job, bool prefix_exists) {
  for (auto it = host.begin(); it != host.end();) {
    bool stale =
        std::any_of(job.unset.begin(), job.unset.end(), [&](const std::string& glob) { return base::glob_match(glob, it->first); });
    it = stale ? host.erase(it) : std::next(it);
  }
  for (const auto& [name, value] : job.set) host[name] = value;
  if (prefix_exists && !job.path_prefix.empty()) {
    std::string& path = host["PATH"];
    path = path.empty() ? job.path_prefix : job.path_prefix + ":" + path;
  }
  if (host.find("PATH") == host.end()) host["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  return host;
}

Environment rank_environment(const Environment& job, const wire::RankSpec& spec, const RankPlace& place) {
  Environment out = job;
  // emplace: what the user set wins.
  out.emplace("OMP_NUM_THREADS", std::to_string(machine::threads_per_rank(place.cpus, 0, place.local_world)));
  out.emplace("PYTHONUNBUFFERED", "1");
  out.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (!place.error_file.empty()) out["TORCHELASTIC_ERROR_FILE"] = place.error_file;
  if (place.event_fd >= 0) out[wire::kEventFdVariable] = std::to_string(place.event_fd);
  for (const auto& [name, value] : spec.set) out[name] = value;
  return out;
}

std::vector<std::string> rank_arguments(const wire::JobSpec& job, uint32_t local_rank) {
  std::vector<std::string> out = job.argv;
  if (!job.local_rank_macro) return out;
  for (std::string& word : out) word = base::replace_all(word, "${local_rank}", std::to_string(local_rank));
  return out;
}

}  // namespace phalanx::agent
