// What the agent does for the launcher: checks the job, serves and reaches the store, starts and signals the ranks.
#include "agent/life.h"
#include "agent/looks/stack_dump.h"
#include "agent/ranks/python_hook.h"
#include "agent/ranks/rank_users.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/text.h"
#include "machine/network/sockets.h"
#include "machine/old_builds.h"
#include "machine/ranks/profile.h"
#include "os/family.h"
#include "os/files.h"
#include "os/program.h"
#include "sync/store.h"
#include "wire/bounds.h"

namespace phalanx::agent {

using base::ErrorKind;

namespace {
// Who has met the store is asked often while the launcher may have to name the missing, then now and then: each look reads the
// kernel's whole table of connections.
constexpr os::milliseconds kStoreWatchPeriod{500};
constexpr os::milliseconds kStoreWatchSlow{5000};
constexpr os::milliseconds kStoreWatchEager{12'000};
constexpr uint32_t kLongestLookMs = 30'000;
constexpr os::milliseconds kPreparePatience{30'000};
constexpr os::milliseconds kFirstNote{500}, kLongestNote{10'000};  // between two notes of the family
constexpr std::chrono::hours kTendBuilds{24};                      // a build in use says so at least this often
constexpr std::chrono::minutes kTendPatience{10};
constexpr os::milliseconds kHolderBudget{250};
constexpr os::milliseconds kLookReserve{300};  // beyond the deadline, for what is under way
}  // namespace

namespace {

// The process that listens on a port, as far as this user may see; 0: none was seen.
uint32_t holder_of(int port) {
  std::set<uint64_t> inodes;
  for (const machine::Listener& listener : machine::listeners("", {port})) inodes.insert(listener.inode);
  if (inodes.empty()) return 0;
  for (const auto& [inode, pid] : machine::holders("", inodes, kHolderBudget))
    if (pid > 0 && pid <= INT32_MAX) return static_cast<uint32_t>(pid);
  return 0;
}

// What a look at the job's folder and program finds. Runs in a child: each of these may lie on a server that does not answer.
wire::Prepared look_at_job(const wire::JobSpec& job, const Environment& host, bool& prefix) {
  wire::Prepared answer;
  sync::stamp_copy(job.directory);
  if (!os::is_folder(job.directory)) {
    answer.outcome = {false, base::fail(ErrorKind::kUnfit, fmt::format("the working directory {} does not exist", job.directory))
                                 .with_hint(std::string(wire::kAdviceOnDirectory))};
    return answer;
  }
  if (::access(job.directory.c_str(), X_OK) != 0) {
    base::Error denied = base::system_error("enter", job.directory);
    denied.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(denied)};
    return answer;
  }
  prefix = os::is_folder(job.path_prefix);
  Environment environment = job_environment(host, job, prefix);
  base::Result<std::string> program = os::find_program(job.argv[0], environment["PATH"], job.directory);
  if (!program.ok()) {
    base::Error error = std::move(program).error();
    error.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(error)};
    return answer;
  }
  answer.program = *program;
  return answer;
}

}  // namespace

void Agent::prepare(wire::Prepare message) {
  job_ = std::move(message);
  begin_lease();
  // The first byte says whether the prefix of PATH is a folder, the rest is the answer.
  auto look = [job = job_->job, host = host_environment_] {
    bool prefix = false;
    std::string frame;
    (void)wire::encode(frame, look_at_job(job, host, prefix));
    return (prefix ? "y" : "n") + frame.substr(wire::kFrameHeaderBytes);
  };
  prepare_look_.start(look, kPreparePatience, [this](base::Result<std::string> looked) { prepared(std::move(looked)); });
}

void Agent::prepared(base::Result<std::string> looked) {
  wire::Prepared answer;
  base::Result<wire::Prepared> decoded =
      looked.ok() ? wire::decode<wire::Prepared>(std::string_view(*looked).substr(1)) : base::Result<wire::Prepared>(looked.error());
  if (decoded.ok()) {
    answer = std::move(decoded).value();
  } else {
    std::string places = fmt::format("{}, or a directory of PATH or the program {}", job_->job.directory, job_->job.argv[0]);
    base::Error error = base::fail(ErrorKind::kUnfit, fmt::format("no answer from the file system of {}", places))
                            .because(decoded.error().message)
                            .with_hint("stat " + base::shell_quote(job_->job.directory));
    answer.outcome = {false, std::move(error)};
  }
  if (answer.outcome.ok) {
    job_environment_ = job_environment(host_environment_, job_->job, looked->front() == 'y');
    program_ = answer.program;
    scratch_ = Scratch::create(job_->run_id);
    if (!cgroup_) cgroup_ = machine::OwnCgroup::create(job_->run_id + "-" + std::to_string(::getpid()));
    if (lease_.begun()) order_guard();
  }
  outbox_.control(answer);
}

void Agent::open_store(const wire::OpenStore& message) {
  wire::StoreOpened answer;
  store_.reset();
  mesh_listener_.close_port(message.port);
  base::Result<os::Listener> listener = os::listen_tcp({message.address, static_cast<uint16_t>(message.port)});
  if (!listener.ok()) {
    base::Error error = std::move(listener).error();
    error.kind = ErrorKind::kUnfit;
    answer.outcome = {false, std::move(error)};
    if (message.port != 0) answer.holder = holder_of(static_cast<int>(message.port));
  } else if (message.serve) {
    answer.port = listener->endpoint.port;
    store_endpoint_ = listener->endpoint;
    store::ServerOptions options;
    options.key = job_ ? job_->key : "";
    options.admits_user = [users = std::make_shared<RankUsers>()](uid_t uid) { return users->runs_as(uid); };
    base::Result<std::unique_ptr<store::Server>> server = store::Server::start(loop_, std::move(listener).value(), options);
    if (server.ok()) {
      store_ = std::move(server).value();
      store_->allow(message.address);
      store_->allow("127.0.0.1");
      store_->allow("::1");
      for (const os::InterfaceAddress& a : addresses_) store_->allow(a.address);
    } else {
      answer.outcome = {false, std::move(server).error()};
    }
  } else {
    answer.port = listener->endpoint.port;  // rank 0 will bind it itself; the listener is closed here
  }
  outbox_.control(answer);
}

void Agent::reach(const wire::Reach& message) {
  reach_ = std::make_unique<ReachCheck>(loop_, os::Endpoint{message.address, static_cast<uint16_t>(message.port)}, job_ ? job_->key : "",
                                        os::milliseconds(message.timeout_ms), [this](wire::Reached result) { outbox_.control(result); });
}

void Agent::start(const wire::Start& message) {
  if (!job_) return end_everything("Start came before Prepare");
  store_endpoint_ = {message.store_address, static_cast<uint16_t>(message.store_port)};
  for (const auto& [name, value] : message.defaults) job_environment_.emplace(name, value);
  RankCommand command{job_->job, program_, scratch_ ? scratch_->path() : "", "", cgroup_ ? cgroup_->join() : -1};
  if (scratch_ && job_environment_.erase(wire::kPythonHookVariable) > 0) command.hook = write_python_hook(scratch_->path());
  for (const wire::RankSpec& spec : message.ranks) {
    RankPlace place;
    place.cpus = cpus_;
    place.local_world = static_cast<uint32_t>(message.ranks.size());
    ranks_.start(spec, job_environment_, command, place);
    not_connected_.insert(spec.rank);
  }
  started_ = os::mono_now();
  note_family(kFirstNote);
  pulse_.start();
  tend_builds(true);
  stamp_copy();
  if (message.store_port != 0) loop_.after(kStoreWatchPeriod, [this] { watch_store(); });
}

// An agent that deployment has put into a cache says that its build is in use, and removes those that are not. A start that follows another
// within the hour leaves it to that one, which saves a fork.
void Agent::tend_builds(bool at_start) {
  if (finishing_since_) return;
  const std::string program = os::self_executable(), folder = program.substr(0, program.rfind('/'));
  const std::string cache = folder.substr(0, folder.rfind('/')), build = build_;
  if (program != cache + "/" + build + "/phalanx") return;
  loop_.after(kTendBuilds, [this] { tend_builds(false); });
  // Only at the start, moments after this program was read from that disk: later a dead disk would hold the agent up.
  if (at_start && machine::tended_lately(folder, os::wall_now_ns())) return;
  auto look = [cache, build] {
    std::string said;
    machine::tend_builds(cache, build, {}, os::wall_now_ns(), [&](const std::string& old, const std::string& problem) {
      const std::string path = cache + "/" + old;
      said += (problem.empty() ? fmt::format("removed the old build {}", path)
                               : fmt::format("removed the old build {} only in part: {}", path, problem)) +
              "\n";
    });
    return said;
  };
  builds_look_.start(look, kTendPatience, [this](base::Result<std::string> answer) {
    if (!answer.ok()) return;
    for (std::string_view line : base::split_lines(*answer)) outbox_.control(wire::Trouble{std::string(line)});
  });
}

// A copy that --sync has made is removed when no run has used it for long: this one still does.
void Agent::stamp_copy() {
  loop_.after(kTendBuilds, [this] {
    if (finishing_since_) return;
    auto stamp = [directory = job_->job.directory] {
      sync::stamp_copy(directory);
      return std::string("-");
    };
    prepare_look_.start(stamp, kPreparePatience, [](const base::Result<std::string>&) {});
    stamp_copy();
  });
}

// For whoever looks for the run's processes when this agent is no more. Often at first, when programs start their workers.
void Agent::note_family(os::milliseconds again) {
  if (finishing_since_) return;
  ranks_.note_cgroups();
  if (scratch_) family_record_.write(scratch_->path(), cgroup_path());
  loop_.after(again, [this, again] { note_family(std::min(2 * again, kLongestNote)); });
}

// Which ranks hold a connection to the store. Seen from the ranks' side, so it works for every dialect and for rank 0 as host.
void Agent::watch_store() {
  if (not_connected_.empty() || finishing_since_) return;
  loop_.after(os::mono_now() - started_ < kStoreWatchEager ? kStoreWatchPeriod : kStoreWatchSlow, [this] { watch_store(); });
  std::set<uint64_t> sockets = machine::sockets_to(store_endpoint_);
  if (sockets.empty()) return;
  for (const Ranks::Living& rank : ranks_.living()) {
    if (!not_connected_.count(rank.rank)) continue;
    std::vector<pid_t> family{rank.pid};
    for (const os::ProcessInfo& p : os::descendants(rank.pid)) family.push_back(p.pid);
    if (!machine::holds_socket(family, sockets)) continue;
    not_connected_.erase(rank.rank);
    ranks_.note_cgroups();
    outbox_.control(wire::Connected{rank.rank});
  }
}

void Agent::sample(const wire::Sample& message) {
  std::vector<machine::RankProcess> ranks;
  os::Mono now = os::mono_now();
  for (const Ranks::Living& r : ranks_.living()) ranks.push_back({r.rank, r.pid, (now - r.spoke).count() / 1'000'000});
  os::milliseconds budget(std::clamp<uint32_t>(message.deadline_ms, 100, kLongestLookMs));
  auto opened = std::make_shared<machine::OpenedMemories>();
  std::vector<int> kept;
  if (message.frames || message.looks > 0) {
    std::vector<pid_t> roots;
    for (const machine::RankProcess& r : ranks) roots.push_back(r.pid);
    *opened = machine::open_memories(roots);
    for (const auto& [pid, file] : *opened) kept.push_back(file.get());
  }
  auto look = [ranks, message, budget, opened] {
    machine::HostSample sample;
    if (message.looks == 0) sample = machine::sample_ranks(ranks, message.frames, message.gpus, budget, *opened);
    else sample.profiles = machine::profile_ranks(ranks, std::min(message.looks, wire::kMostLooks), budget, *opened);
    return base::to_text(base::to_json(sample));
  };
  const bool person = (message.id & wire::kPersonAsks) != 0 && (message.id >> 31) == 0;
  (message.looks > 0 ? profile_look_
   : person          ? asked_look_
                     : sample_look_)
      .start(
          look, budget + kLookReserve,
          [this, id = message.id](base::Result<std::string> answer) {
            wire::Sampled sampled;
            sampled.id = id;
            if (answer.ok()) sampled.json = std::move(answer).value();
            else sampled.outcome = {false, std::move(answer).error()};
            outbox_.control(sampled);
          },
          kept);
}

void Agent::dig_into(const wire::Dig& message) {
  std::vector<DigTarget> targets;
  for (const Ranks::Living& r : ranks_.living())
    if (std::find(message.ranks.begin(), message.ranks.end(), r.rank) != message.ranks.end())
      targets.push_back({r.rank, r.pid, r.stack_file});
  os::milliseconds budget(std::clamp<uint32_t>(message.deadline_ms, 100, kLongestLookMs));
  std::string path = job_environment_.count("PATH") ? job_environment_["PATH"] : "/usr/bin:/bin";
  auto look = [targets, path, budget, message] {
    std::string frame;
    base::Status fits = wire::encode(frame, dig(message, targets, path, budget));
    return fits.ok() ? frame.substr(wire::kFrameHeaderBytes) : std::string();
  };
  dig_look_.start(look, budget + kLookReserve, [this, id = message.id](base::Result<std::string> answer) {
    wire::Dug dug;
    if (answer.ok())
      if (base::Result<wire::Dug> whole = wire::decode<wire::Dug>(*answer); whole.ok()) dug = std::move(whole).value();
    dug.id = id;
    outbox_.control(dug);
  });
}

void Agent::signal(int signal_number) {
  ranks_.signal(signal_number);
  if (signal_number != SIGKILL) return;
  bool probe_left = false;
  for (const os::ProcessInfo& p : rank_family(probe_left)) {
    os::signal_process(p.pid, p.start, SIGKILL);
    ++killed_;
  }
}

}  // namespace phalanx::agent
