#include "agent/looks/sweep_duty.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/ranks/family_record.h"
#include "agent/scratch.h"
#include "base/json.h"
#include "base/try.h"
#include "machine/own_cgroup.h"
#include "os/family.h"

namespace phalanx::agent {
namespace {

constexpr os::milliseconds kReserve{500};
constexpr os::milliseconds kLookAgain{500};

// From the child to the loop: both are this program.
std::string to_text(const machine::RunLook& look) {
  base::Json found = base::Json::array();
  for (const machine::RunProcess& p : look.found) found.push_back({p.pid, p.start_ticks, p.command});
  base::Json unseen = base::Json::array();
  for (const machine::Unseen& u : look.unseen) unseen.push_back({u.pid, u.text});
  return base::to_text({{"found", found}, {"unseen", unseen}});
}

base::Result<machine::RunLook> from_text(const std::string& text) {
  TRY_ASSIGN(base::Json json, base::parse_json(text));
  machine::RunLook look;
  for (const base::Json& p : json["found"]) look.found.push_back({p[0].get<int64_t>(), p[1].get<int64_t>(), p[2].get<std::string>()});
  for (const base::Json& u : json["unseen"]) look.unseen.push_back({u[0].get<int64_t>(), u[1].get<std::string>()});
  return look;
}

}  // namespace

SweepDuty::~SweepDuty() {
  if (timer_) loop_.cancel(timer_);
}

void SweepDuty::start(const wire::Sweep& sweep) {
  run_id_ = sweep.run_id;
  kill_at_ = os::mono_now() + os::milliseconds(std::min<int64_t>(sweep.patience_ms, kLongestPatienceMs));
  seen_.clear();
  killed_.clear();
  if (timer_) loop_.cancel(timer_);
  timer_ = loop_.after(os::nanoseconds(0), [this] { look(); });
}

void SweepDuty::look() {
  timer_ = 0;
  const bool kill = os::mono_now() >= kill_at_;
  auto look = [run_id = run_id_, kill] {
    const machine::RunEvidence evidence = read_family_records(run_id);
    machine::RunLook seen = machine::run_processes("", run_id, evidence, kBudget);
    // What forks faster than we can name it is named so far, and ended as a whole.
    for (const std::string& cgroup : evidence.cgroups) {
      if (kill) machine::OwnCgroup::kill(cgroup);
      if (machine::OwnCgroup::look(cgroup) == machine::OwnCgroup::Content::kPopulated && seen.found.empty())
        seen.unseen.push_back({0, fmt::format("processes in the control group {}", cgroup)});
      machine::OwnCgroup::remove(cgroup);
    }
    return to_text(seen);
  };
  look_.start(look, kBudget + kReserve, [this](base::Result<std::string> answer) {
    base::Result<machine::RunLook> found = answer.ok() ? from_text(*answer) : base::Result<machine::RunLook>(answer.error());
    looked(found.ok() ? *found : machine::RunLook{{}, {{0, "/proc: " + found.error().message}}});
  });
}

void SweepDuty::looked(const machine::RunLook& look) {
  os::Mono now = os::mono_now();
  bool over = now > kill_at_ + kKillTime;
  for (const machine::RunProcess& p : look.found) {
    seen_[{p.pid, p.start_ticks}] = p.command;
    if (now < kill_at_) continue;
    killed_[{p.pid, p.start_ticks}] = p.command;
    if (!over) os::signal_process(static_cast<pid_t>(p.pid), static_cast<unsigned long long>(p.start_ticks), SIGKILL);
  }
  // A process that could not be looked at may be on its way out.
  if ((!look.found.empty() || (!look.unseen.empty() && now < kill_at_ + kLookAgain)) && !over) {
    timer_ = loop_.after(kLook, [this] { this->look(); });
    return;
  }
  finish(look);
}

void SweepDuty::finish(const machine::RunLook& look) {
  wire::Swept swept;
  for (const auto& [name, command] : killed_) {
    auto same = [&name = name](const machine::RunProcess& p) { return p.pid == name.first && p.start_ticks == name.second; };
    bool gone = std::none_of(look.found.begin(), look.found.end(), same);
    if (swept.found.size() < wire::kMaxSwept || !gone)
      swept.found.push_back({static_cast<uint32_t>(name.first), command.substr(0, wire::kMostSweptBytes), gone});
  }
  if (swept.found.size() > wire::kMaxSwept) {  // what could not be ended is worth more than what could
    std::stable_sort(swept.found.begin(), swept.found.end(), [](auto& a, auto& b) { return a.gone < b.gone; });
    swept.found.resize(wire::kMaxSwept);
  }
  swept.waited_for = static_cast<uint32_t>(seen_.size() - killed_.size());
  for (const machine::Unseen& u : look.unseen) swept.unseen.push_back({static_cast<uint32_t>(u.pid), u.text});
  if (look.found.empty() && look.unseen.empty())
    for (const std::string& folder : scratches_of(run_id_)) remove_scratch(folder);
  done_(swept);
}

}  // namespace phalanx::agent
