#include "cli/records/run_events.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/try.h"
#include "logs/runs/run_list.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMaxLine = 1 << 20;

// "" if there is no such file.
base::Result<std::string> end_of_file(const std::string& run_folder, const std::string& name, size_t most) {
  TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_below(run_folder, name));
  if (!file) return std::string();
  const std::string path = run_folder + "/" + name;
  TRY_ASSIGN(const struct stat s, os::stat_of(*file, path));
  if (s.st_size > static_cast<off_t>(most)) ::lseek(file->get(), s.st_size - static_cast<off_t>(most), SEEK_SET);
  std::string text;
  char block[16 << 10];
  while (text.size() < most + sizeof(block)) {
    os::IoStep step = os::read_step(file->get(), block, sizeof(block));
    if (step.kind == os::IoStep::kError) return base::system_error("read", path, step.error_number);
    if (step.kind != os::IoStep::kBytes) break;
    text.append(block, step.bytes);
  }
  return text;
}

}  // namespace

base::Result<std::vector<RunEvent>> read_events(const std::string& run_folder) {
  std::vector<RunEvent> events;
  TRY_ASSIGN(const std::string text, end_of_file(run_folder, "events.jsonl", kMaxEventBytes));
  for (std::string_view line : base::split_lines(text)) {
    base::Result<base::Json> json = base::parse_json(line, kMaxLine);
    if (!json.ok() || !json->is_object()) continue;
    RunEvent event{base::get_string(*json, "t").value_or(""), base::get_string(*json, "event").value_or(""), nullptr};
    if (event.name.empty()) continue;
    event.fields = std::move(json).value();
    events.push_back(std::move(event));
  }
  return events;
}

base::Result<std::map<std::string, std::set<int64_t>>> started_pids(const std::string& run_folder) {
  base::Result<std::vector<RunEvent>> events = read_events(run_folder);
  if (!events.ok()) return logs::cannot_read(events.error(), "which processes this run has started", run_folder);
  std::map<std::string, std::set<int64_t>> pids;
  for (const RunEvent& event : *events) {
    if (event.name != "rank_started") continue;
    std::optional<int64_t> pid = base::get_int(event.fields, "pid");
    std::optional<std::string> host = base::get_string(event.fields, "host");
    if (pid && host && *pid > 1) pids[*host].insert(*pid);
  }
  return pids;
}

}  // namespace phalanx::cli
