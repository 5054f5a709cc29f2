#include "cli/records/record.h"

#include <sys/wait.h>

#include <algorithm>

#include <fmt/format.h>

#include "cli/records/record_facts.h"
#include "cli/records/record_life.h"
#include "cli/records/record_plan.h"
#include "job/findings_text.h"
#include "job/narrate.h"
#include "job/stall_text.h"
#include "os/clock.h"
#include "os/process.h"

namespace phalanx::cli {
namespace {

using base::Json;

std::string host_name(const job::State& state, size_t host) { return state.job.hosts[host].target.name; }

Json how_it_ended(int status) {
  if (WIFSIGNALED(status)) return {{"signal", os::signal_name(WTERMSIG(status))}};
  return {{"code", WEXITSTATUS(status)}};
}

Json errors_of(const std::vector<base::Error>& errors) {
  Json list = Json::array();
  for (const base::Error& e : errors) list.push_back({{"message", e.message}, {"because", e.cause}, {"hint", e.hint}});
  return list;
}

struct Describe {
  const job::State& state;
  size_t host;

  EventRecord operator()(const wire::Hello& m) const {
    return {"host_open", {{"host", host_name(state, host)}, {"hostname", m.hostname}, {"cpus", m.cpus}, {"gpus", m.gpus}}};
  }
  EventRecord operator()(const wire::Prepared& m) const {
    Json fields = {{"host", host_name(state, host)}, {"ok", m.outcome.ok}};
    if (m.outcome.ok) fields["program"] = m.program;
    else fields["error"] = m.outcome.error.message;
    return {"host_prepared", std::move(fields)};
  }
  EventRecord operator()(const wire::StoreOpened& m) const {
    Json fields = {{"host", host_name(state, host)}, {"ok", m.outcome.ok}, {"port", m.port}};
    if (!m.outcome.ok) fields["error"] = m.outcome.error.message;
    return {"store_open", std::move(fields)};
  }
  EventRecord operator()(const wire::Reached& m) const {
    Json fields = {{"host", host_name(state, host)}, {"ok", m.outcome.ok}, {"interface", m.interface}};
    if (!m.outcome.ok) fields["error"] = m.outcome.error.message + ": " + m.outcome.error.cause;
    return {"host_reached", std::move(fields)};
  }
  EventRecord operator()(const wire::Started& m) const {
    return {"rank_started", {{"rank", m.rank}, {"host", host_name(state, host)}, {"pid", m.pid}, {"ok", m.outcome.ok}}};
  }
  EventRecord operator()(const wire::Exited& m) const {
    Json fields = {{"rank", m.rank}, {"host", host_name(state, host)}};
    fields.update(how_it_ended(static_cast<int>(m.status)));
    std::string kernel;
    for (const wire::ExitSign& sign : m.signs) kernel += sign.text + "\n";
    if (!kernel.empty()) fields["kernel"] = kernel;
    if (m.stopped_by_us != 0) fields["stopped_by_us"] = os::signal_name(m.stopped_by_us);
    return {"rank_exited", std::move(fields)};
  }
  EventRecord operator()(const wire::Connected& m) const {
    return {"rank_connected", {{"rank", m.rank}, {"host", host_name(state, host)}}};
  }
  EventRecord operator()(const wire::Pong&) const { return {}; }
  EventRecord operator()(const wire::Probed& m) const {
    Json fields = {{"host", host_name(state, host)}, {"ok", m.outcome.ok}, {"bytes", m.json.size()}};
    if (!m.outcome.ok) fields["error"] = m.outcome.error.message;
    return {"host_probed", std::move(fields)};
  }
  EventRecord operator()(const wire::Listening& m) const {
    return {"host_listening", {{"host", host_name(state, host)}, {"places", m.places.size()}}};
  }
  EventRecord operator()(const wire::Dialed& m) const {
    Json fields = {{"host", host_name(state, host)}, {"round", m.round}, {"links", m.links.size()}};
    for (const wire::DialedLink& link : m.links)
      if (link.outcome != wire::LinkOutcome::kOk && link.to < state.hosts.size())
        fields["failed"].push_back({host_name(state, link.to), std::string(wire::name_of(link.outcome))});
    return {"host_dialed", std::move(fields)};
  }
  EventRecord operator()(const wire::Sampled& m) const {
    Json fields = {{"host", host_name(state, host)}, {"ok", m.outcome.ok}, {"bytes", m.json.size()}};
    if (!m.outcome.ok) fields["error"] = m.outcome.error.message;
    return {"ranks_sampled", std::move(fields)};
  }
  EventRecord operator()(const wire::Dug& m) const {
    Json fields = {{"host", host_name(state, host)}, {"pieces", Json::array()}};
    for (const wire::Piece& piece : m.pieces)
      fields["pieces"].push_back({{"rank", piece.rank}, {"kind", piece.kind}, {"bytes", piece.bytes.size()}});
    return {"ranks_dug", std::move(fields)};
  }
  EventRecord operator()(const wire::Finished& m) const {
    return {"host_finished", {{"host", host_name(state, host)}, {"killed", m.killed}, {"left", m.left}}};
  }
  EventRecord operator()(const wire::Trouble& m) const { return {"trouble", {{"host", host_name(state, host)}, {"text", m.text}}}; }
};

const char* name_of(const job::Verdict& v) {
  switch (v.kind) {
    case job::Verdict::Kind::kDone: return "done";
    case job::Verdict::Kind::kPlanned: return "planned";
    case job::Verdict::Kind::kChecked: return "checked";
    case job::Verdict::Kind::kRefused: return "refused";
    case job::Verdict::Kind::kRankFailed: return "rank-failed";
    case job::Verdict::Kind::kHostLost: return v.suspended ? "launcher-suspended" : "host-lost";
    case job::Verdict::Kind::kHung: return "hung";
    case job::Verdict::Kind::kInterrupted: return v.exit_code == job::kTimedOutCode ? "timed-out" : "interrupted";
  }
  return "unknown";
}

}  // namespace

EventRecord describe(const job::State& state, const job::Event& event) {
  if (auto* said = std::get_if<job::HostSaid>(&event)) return std::visit(Describe{state, said->host}, said->message);
  if (auto* ended = std::get_if<job::HostEnded>(&event)) {
    // After its last word the agent ends, and its connection with it: nothing was lost, whatever ssh says of that.
    if (ended->host < state.hosts.size() && state.hosts[ended->host].finished)
      return {"host_ended", {{"host", host_name(state, ended->host)}}};
    return {"host_ended", {{"host", host_name(state, ended->host)}, {"error", ended->error.message}, {"because", ended->error.cause}}};
  }
  if (auto* signal = std::get_if<job::OperatorSignal>(&event)) {
    if (signal->limit) return {"time_limit", {{"limit_s", static_cast<double>(signal->limit->count()) / 1e3}}};
    return {"operator_signal", {{"signal", os::signal_name(signal->signal)}}};
  }
  return {};
}

Json describe(const job::State& state, const job::Verdict& v) {
  Json json = {{"verdict", name_of(v)}, {"exit_code", v.exit_code}};
  if (v.kind == job::Verdict::Kind::kRankFailed) {
    json["rank"] = v.rank;
    json["host"] = host_name(state, v.host);
    json["local_rank"] = state.plan->local_rank(v.rank);
    json.update(how_it_ended(v.status));
    if (v.lead) json["seconds_before_any_other"] = static_cast<double>(v.lead->count()) / 1e9;
  }
  if (!v.code.empty()) json["cause"] = v.code;  // "code" is the rank's exit code
  if (!v.evidence.empty()) json["evidence"] = v.evidence;
  if (!v.where.empty()) json["where"] = v.where;
  if (v.kind == job::Verdict::Kind::kHung) json["stall"] = job::describe_stall(state, *v.hang);
  if (v.kind == job::Verdict::Kind::kHostLost && !v.suspended) json["host"] = host_name(state, v.host);
  if (!v.refusals.empty()) json["errors"] = errors_of(v.refusals);
  if (v.unfit) json["errors"] = errors_of(job::found_errors(state, base::Language::kEnglish));
  if (v.attempt > 0) json["restarts"] = v.attempt;
  if (os::nanoseconds step = state.stall.movement.usual_step(); step.count() > 0) json["step_s"] = static_cast<double>(step.count()) / 1e9;
  json["ranks_stopped"] = v.stopped;
  json["ranks_lost"] = v.lost;
  json["ranks_failed_later"] = v.also_failed;
  return json;
}

Json describe_plan(const job::State& state) {
  Json hosts = Json::array();
  for (size_t h = 0; state.plan && h < state.plan->hosts.size(); ++h) {
    const job::PlannedHost& planned = state.plan->hosts[h];
    const job::HostState& host = state.hosts[h];
    hosts.push_back({{"host", planned.name},
                     {"hostname", host.hello.hostname},
                     {"first_rank", planned.first_rank},
                     {"ranks", planned.ranks},
                     {"why", planned.why},
                     {"cpus", host.hello.cpus},
                     {"gpus", host.hello.gpus},
                     {"program", host.program}});
  }
  Json json = {
      {"schema", 1}, {"command", state.job.argv}, {"workdir", state.job.directory}, {"world_size", state.plan ? state.plan->world : 0}};
  if (state.meeting) {
    json["master_addr"] = state.meeting->address;
    json["master_port"] = state.meeting->port;
  }
  json["hosts"] = std::move(hosts);
  return json;
}

Record::Record(logs::RunDirectory directory, logs::Files& files, int64_t began_wall_ns, uint64_t most_log_bytes)
    : directory_(std::move(directory)),
      files_(files),
      began_wall_ns_(began_wall_ns),
      most_log_bytes_(most_log_bytes),
      progress_(files, directory_.path() + "/progress.jsonl") {
  directory_.write_to(files);
}

void Record::opened(const job::Job& job, Json reach) {
  reach_ = std::move(reach);
  Json hosts = Json::array();
  for (const job::HostRequest& host : job.hosts) hosts.push_back({{"host", host.target.name}});
  Json json = {{"schema", 1},         {"id", directory_.id()},    {"began", os::iso_time(began_wall_ns_)},
               {"command", job.argv}, {"workdir", job.directory}, {"hosts", std::move(hosts)}};
  json.update(reach_);
  json["state"] = "starting";
  directory_.write_record(json);
}

void Record::write(const job::State& state, const Json& end) {
  Json json = {{"schema", 1}, {"id", directory_.id()}, {"began", os::iso_time(began_wall_ns_)}};
  json.update(describe_plan(state));
  add_given(state, json);
  json["attempt"] = attempt_;
  json["earlier_attempts"] = attempts_;
  json.update(reach_);
  json.update(end);
  directory_.write_record(json);
}

void Record::started(const job::State& state) {
  close_logs();
  ranks_.clear();
  ranks_.resize(state.ranks.size());
  attempt_ = state.job.attempt;
  if (streams_) streams_->started(attempt_, ranks_.size());
  write(state, {{"state", "running"}});
}

void Record::restarting(const job::State& state, const job::Restarting& restarting) {
  Json attempt = describe(state, restarting.ended);
  attempt["ended"] = os::iso_time(os::wall_now_ns());
  Json replaced = Json::array();
  for (const job::Replaced& r : restarting.replaced) replaced.push_back({{"host", r.name}, {"by", r.by}});
  attempt["replaced"] = std::move(replaced);
  directory_.event(os::wall_now_ns(), "attempt_ended", attempt);
  attempts_.push_back(std::move(attempt));
  write(state, {{"state", "restarting"}});
}

void Record::close_logs() {
  for (Rank& rank : ranks_)
    if (rank.log) rank.log->close();
}

Record::Rank* Record::rank(uint32_t number) {
  if (number >= ranks_.size()) return nullptr;
  Rank& rank = ranks_[number];
  if (!rank.log) {
    if (number >= rank_files_.size()) rank_files_.resize(ranks_.size());
    std::optional<logs::FileId>& file = rank_files_[number];
    if (!file) file = files_.log(directory_.rank_log_path(static_cast<int>(number)), logs::Form::kText, most_log_bytes_);
    rank.log = std::make_unique<logs::RankLog>(files_, *file);
    if (attempt_ > 0) rank.log->lines(fmt::format("--- phalanx: restart {}, {}\n", attempt_, os::iso_time(os::wall_now_ns())));
  }
  return &rank;
}

void Record::output(const wire::Output& output) {
  Rank* rank = this->rank(output.rank);
  if (!rank) return;
  if (streams_) streams_->output(output);
  if (output.kind == wire::OutputKind::kProgress) {
    rank->log->progress(output.data, os::mono_now());
    return read_bar(output.rank, *rank, output.data);
  }
  rank->log->lines(output.data);
  if (std::string_view last = logs::last_state(rank->bar_state, output.data); !last.empty()) read_bar(output.rank, *rank, last);
  if (output.stream != wire::Stream::kStderr) return;
  rank->tail.append(output.data.substr(output.data.size() - std::min(output.data.size(), kTailBytes)));
  if (rank->tail.size() > kTailBytes) rank->tail.erase(0, rank->tail.size() - kTailBytes);
}

void Record::read_bar(uint32_t number, Rank& rank, std::string_view state) {
  if (rank.reports) return;
  rank.bar_state = state;
  std::optional<logs::Bar> bar = logs::parse_bar(state);
  if (!bar) return;
  if (auto read = rank.bar.take(*bar, os::mono_now())) progress_.add(seconds_in(), static_cast<int>(number), *read);
}

void Record::event(const job::State& state, const job::Event& event) {
  EventRecord record = describe(state, event);
  if (!record.name.empty()) directory_.event(os::wall_now_ns(), record.name, record.fields);
  write_facts(event);
  auto* said = std::get_if<job::HostSaid>(&event);
  auto* exited = said ? std::get_if<wire::Exited>(&said->message) : nullptr;
  if (exited && streams_) streams_->exited(*exited);
}

// What the probe saw of each host: for `phalanx report`.
void Record::write_facts(const job::Event& event) {
  auto* said = std::get_if<job::HostSaid>(&event);
  auto* probed = said ? std::get_if<wire::Probed>(&said->message) : nullptr;
  if (!probed || !probed->outcome.ok || probed->json.size() > kMostFactBytes) return;
  base::Result<std::string> kept = facts_for_file(probed->json);
  if (!kept.ok()) return;  // not facts: the checks say so
  // Host names may hold anything: files are numbered in the order of the host list.
  files_.replace(fmt::format("{}/facts/{}.json", directory_.path(), said->host), *kept);
}

void Record::progress(int rank, const wire::RankProgress& progress) {
  if (rank >= 0 && static_cast<size_t>(rank) < ranks_.size()) ranks_[static_cast<size_t>(rank)].reports = true;
  progress_.add(seconds_in(), rank, progress);
}

void Record::shown_progress(int rank, const wire::RankProgress& progress) { progress_.add(seconds_in(), rank, progress); }

void Record::note(const std::string& text) { directory_.event(os::wall_now_ns(), "note", {{"text", text}}); }

void Record::synced(const Json& what) { directory_.event(os::wall_now_ns(), "synced", what); }

void Record::removed_run(const std::string& id, const std::string& why, const std::string& problem) {
  Json fields = {{"run", id}, {"why", why}};
  if (!problem.empty()) fields["problem"] = problem;
  directory_.event(os::wall_now_ns(), "run_removed", fields);
}

void Record::idle() {
  for (Rank& rank : ranks_)
    if (rank.log) rank.log->idle();
}

void Record::ended(const job::State& state, const job::Verdict& verdict, const Json& last_progress, uint64_t lost_bytes) {
  close_logs();
  progress_.close();
  Json end = {{"state", "ended"}, {"ended", os::iso_time(os::wall_now_ns())}};
  end.update(describe(state, verdict));
  if (!last_progress.is_null()) end["progress"] = last_progress;
  if (lost_bytes > 0) end["lost_log_bytes"] = lost_bytes;
  std::string log = verdict.rank >= 0 ? directory_.rank_log_path(verdict.rank) : "";
  end.update(describe_words(state, verdict, last_lines(verdict.rank), log));
  directory_.event(os::wall_now_ns(), "end", describe(state, verdict));
  write(state, end);
  files_.remove(directory_.reserve_path());
}

std::string Record::last_lines(int rank) const {
  if (rank < 0 || static_cast<size_t>(rank) >= ranks_.size()) return "";
  const std::string& tail = ranks_[static_cast<size_t>(rank)].tail;
  size_t begin = tail.size();
  for (size_t lines = 0; begin > 0; --begin)
    if (tail[begin - 1] == '\n' && ++lines > kTailLines) break;
  return tail.substr(begin);
}

}  // namespace phalanx::cli
