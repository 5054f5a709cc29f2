#include "cli/run_events.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/fd.h"
#include "os/files.h"

namespace cli {
namespace {

constexpr size_t kMaxLine = 1 << 20;

std::string end_of_file(const std::string& run_folder, std::string_view name, size_t most) {
  base::Result<os::Fd> file = os::open_regular_below(run_folder, name);
  struct stat s{};
  if (!file.ok() || ::fstat(file->get(), &s) != 0) return "";
  if (s.st_size > static_cast<off_t>(most)) ::lseek(file->get(), s.st_size - static_cast<off_t>(most), SEEK_SET);
  std::string text;
  char block[16 << 10];
  while (text.size() < most + sizeof(block)) {
    os::IoStep step = os::read_step(file->get(), block, sizeof(block));
    if (step.kind != os::IoStep::kBytes) break;
    text.append(block, step.bytes);
  }
  return text;
}

}  // namespace

std::vector<RunEvent> read_events(const std::string& run_folder) {
  std::vector<RunEvent> events;
  std::string text = end_of_file(run_folder, "events.jsonl", kMaxEventBytes);
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

std::map<std::string, std::set<int64_t>> started_pids(const std::string& run_folder) {
  std::map<std::string, std::set<int64_t>> pids;
  for (const RunEvent& event : read_events(run_folder)) {
    if (event.name != "rank_started") continue;
    std::optional<int64_t> pid = base::get_int(event.fields, "pid");
    std::optional<std::string> host = base::get_string(event.fields, "host");
    if (pid && host && *pid > 1) pids[*host].insert(*pid);
  }
  return pids;
}

}  // namespace cli
