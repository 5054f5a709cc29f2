// ps: the runs of this machine, newest first. Each one that lives is asked by its control socket where it stands.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/verbs.h"
#include "cli/records/runs.h"
#include "job/control/client.h"
#include "machine/ranks/process_table.h"
#include "os/clock.h"
#include "view/speed.h"
#include "view/story/run_table.h"

namespace phalanx::cli {
namespace {

using base::Json;

constexpr os::milliseconds kAnswer{500};  // a launcher answers at once, or it is stopped

std::vector<std::string> host_names(const Json& record) {
  std::vector<std::string> names;
  for (const Json& host : base::get_list(record, "hosts"))
    if (host.is_object()) names.push_back(base::get_string(host, "host").value_or("?"));
  return names;
}

struct Listed {
  logs::Run run;
  Json status;  // of its launcher; null where there is no answer
  std::string state;
  Json progress;
};

Listed look(logs::Run run) {
  Listed listed{std::move(run), nullptr, "", nullptr};
  bool silent = false;
  if (listed.run.life == logs::Life::kAlive) {
    base::Result<Json> status = job::ask_status(listed.run.path, listed.run.id, kAnswer);
    silent = !status.ok() && status.error().kind == base::ErrorKind::kTimeout;
    if (status.ok() && status->is_object()) listed.status = std::move(status).value();
    else listed.run = logs::look_at_run(listed.run.path, listed.run.id);  // it may have ended meanwhile
  }
  listed.state = silent && listed.run.life == logs::Life::kAlive ? "silent" : state_of(listed.run, listed.status);
  const Json& source = listed.status.is_object() ? listed.status : listed.run.record;
  if (auto progress = source.find("progress"); progress != source.end() && progress->is_object()) listed.progress = *progress;
  return listed;
}

view::RunRow row_of(const Listed& listed) {
  view::RunRow row;
  row.id = listed.run.id;
  row.state = state_word(listed.state);
  row.name = base::get_string(listed.run.record, "name").value_or("");
  if (!listed.run.ours) row.owner = machine::user_name("", listed.run.owner);
  row.hosts = host_names(listed.run.record);
  row.ranks = base::get_int(listed.run.record, "world_size").value_or(0);
  row.ended = listed.run.life == logs::Life::kEnded;
  row.age_s = age_s(listed.run, os::wall_now_ns());
  row.command = base::shell_quote(base::get_strings(listed.run.record, "command"));
  if (!listed.progress.is_object()) return row;
  std::optional<int64_t> step = base::get_int(listed.progress, "step"), total = base::get_int(listed.progress, "total");
  if (step) row.step = total ? fmt::format("{}/{}", *step, *total) : std::to_string(*step);
  if (std::optional<double> loss = base::get_number(listed.progress, "loss")) row.loss = fmt::format("{:.4g}", *loss);
  row.speed = view::speed_text(listed.progress, language_here());
  return row;
}

// Once, for the first: in a shared folder every run of others may be one.
void warn_of_unreadable(const std::vector<Listed>& runs) {
  size_t count = 0;
  const Listed* first = nullptr;
  for (const Listed& listed : runs) {
    if (!listed.run.unreadable) continue;
    ++count;
    if (!first) first = &listed;
  }
  if (count == 0) return;
  base::Error error = *first->run.unreadable;
  if (count > 1) error.message = base::counted("cannot read {} runs; the first is {}", count, first->run.id);
  warn_of(error);
}

Json json_of(const Listed& listed) {
  const logs::Run& run = listed.run;
  Json json = {{"id", run.id}, {"state", listed.state}, {"path", run.path}, {"ours", run.ours}, {"hosts", host_names(run.record)}};
  for (const char* key : {"name", "world_size", "began", "ended", "verdict", "exit_code", "command", "launcher"})
    if (auto value = run.record.find(key); value != run.record.end()) json[key] = *value;
  if (listed.progress.is_object()) json["progress"] = listed.progress;
  if (listed.status.is_object()) json["phase"] = listed.status["phase"];
  return json;
}

}  // namespace

base::Result<int> ps_verb(const Invocation& invocation) {
  TRY_ASSIGN(std::string folder, runs_folder(invocation));
  std::vector<Listed> runs;
  TRY_ASSIGN(std::vector<logs::Run> all, logs::list_runs(folder));
  for (logs::Run& run : all)
    if (invocation.has(Flag::kEveryRun) || run.life != logs::Life::kEnded) runs.push_back(look(std::move(run)));
  warn_of_unreadable(runs);
  std::string out;
  if (invocation.has(Flag::kJson)) {
    Json list = Json::array();
    for (const Listed& listed : runs) list.push_back(json_of(listed));
    out = base::to_text(Json{{"schema", 1}, {"runs", std::move(list)}}, 2) + "\n";
  } else {
    std::vector<view::RunRow> rows;
    for (const Listed& listed : runs) rows.push_back(row_of(listed));
    view::TerminalCapabilities around = surroundings_here(invocation);
    out = view::run_table(rows, language_here(), around.out_terminal ? view::terminal_columns(STDOUT_FILENO) : 0);
  }
  if (!invocation.has(Flag::kJson)) out = base::printable_lines(out);  // records in a shared folder may be another user's
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace phalanx::cli
