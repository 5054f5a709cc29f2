#include "hosts/lists/allocation.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::hosts {
namespace {

base::Error unreadable(std::string_view source, std::string_view text) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}: {} is not what Slurm writes", source, base::quote(text)))
      .with_hint("name the hosts with -H, or start the run in a fresh allocation");
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `srun phalanx run …` starts it once per task. The step of an interactive shell has one task.
base::Status refuse_several_tasks(const Variable& variable) {
  const std::string step = variable("SLURM_STEP_ID"), tasks = variable("SLURM_STEP_NUM_TASKS");
  if (!is_number(step) || !is_number(tasks) || tasks == "1") return base::ok();
  return base::fail(base::ErrorKind::kUsage, fmt::format("srun started {} launchers; one launcher starts all ranks", tasks))
      .because(fmt::format("each task of this step would start the whole run on all nodes of job {}", variable("SLURM_JOB_ID")))
      .with_hint("leave out srun: in the job script, `phalanx run -- …` reaches all nodes by itself");
}

}  // namespace

base::Result<std::vector<int>> parse_repeated_counts(std::string_view text, std::string_view source, size_t most) {
  std::vector<int> counts;
  for (std::string_view item : base::split(text, ',')) {
    int64_t times = 1;
    if (size_t open = item.find("(x"); open != std::string_view::npos && item.ends_with(')')) {
      base::Result<int64_t> parsed = base::parse_int(item.substr(open + 2, item.size() - open - 3), 1, static_cast<int64_t>(most));
      if (!parsed.ok()) return unreadable(source, text);
      times = *parsed;
      item = item.substr(0, open);
    }
    base::Result<int64_t> count = base::parse_int(item, 1, 1'000'000);
    if (!count.ok() || counts.size() + static_cast<size_t>(times) > most) return unreadable(source, text);
    counts.insert(counts.end(), static_cast<size_t>(times), static_cast<int>(*count));
  }
  return counts;
}

base::Result<std::optional<Allocation>> slurm_allocation(const Variable& variable) {
  Allocation allocation;
  allocation.job = variable("SLURM_JOB_ID");
  const char* list = "SLURM_JOB_NODELIST";
  if (variable(list).empty()) list = "SLURM_NODELIST";
  if (allocation.job.empty() || variable(list).empty()) return std::optional<Allocation>();
  if (!is_number(allocation.job)) return unreadable("SLURM_JOB_ID", allocation.job);
  TRY(refuse_several_tasks(variable));
  TRY_ASSIGN(allocation.hosts, parse_node_list(variable(list), list));
  // Of a step inside the job the same variable tells the tasks of the step.
  const std::string tasks = variable("SLURM_STEP_ID").empty() ? variable("SLURM_TASKS_PER_NODE") : "";
  if (!tasks.empty()) {
    TRY_ASSIGN(std::vector<int> counts, parse_repeated_counts(tasks, "SLURM_TASKS_PER_NODE", allocation.hosts.size()));
    if (counts.size() != allocation.hosts.size()) return unreadable("SLURM_TASKS_PER_NODE", tasks);
    const bool asked = std::any_of(counts.begin(), counts.end(), [](int count) { return count > 1; });
    for (size_t i = 0; asked && i < counts.size(); ++i) {
      if (counts[i] > kMostSlots) return unreadable("SLURM_TASKS_PER_NODE", tasks);
      allocation.hosts[i].slots = counts[i];
    }
  }
  return std::optional<Allocation>(std::move(allocation));
}

}  // namespace phalanx::hosts
