// The agent's state and its parts: agent.cc is its life (stream, lease, end), duties.cc what it does for the launcher.
#pragma once

#include <time.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/container_watch.h"
#include "agent/copy_duty.h"
#include "agent/guard_link.h"
#include "agent/lease.h"
#include "agent/looks/probe_duty.h"
#include "agent/looks/sweep_duty.h"
#include "agent/looks/usage.h"
#include "agent/mesh/dialer.h"
#include "agent/mesh/listener.h"
#include "agent/mesh/reach.h"
#include "agent/outbox.h"
#include "agent/ranks/environment.h"
#include "agent/ranks/family_record.h"
#include "agent/ranks/ranks.h"
#include "agent/scratch.h"
#include "machine/own_cgroup.h"
#include "os/family.h"
#include "os/loop.h"
#include "os/net.h"
#include "store/server.h"
#include "wire/messages.h"

namespace phalanx::agent {

class Agent {
 public:
  // orders, answers: the pipes to and from the guard (guard_link.h). build: the identity of the agent's program.
  Agent(os::Loop& loop, os::Fd orders, os::Fd answers, std::string build)
      : build_(std::move(build)),
        loop_(loop),
        guard_(loop, std::move(orders), std::move(answers), [this](const std::string& why) { end_everything(why); }),
        outbox_(
            loop, STDOUT_FILENO, [this] { ranks_.resume_reading(); }, [this] { end_everything("the launcher has exited"); }),
        ranks_(loop, outbox_),
        probe_(loop, [this](const wire::Probed& probed) { outbox_.control(probed); }),
        pulse_(
            loop, [this] { return ranks_.living(); },
            [this](const wire::Pulse& pulse) {
              if (!outbox_.full()) outbox_.output(pulse);
            }),
        prepare_look_(loop, "phalanx-prepare", "the check of the job's directory and program"),
        sample_look_(loop, "phalanx-sample", "sampling the ranks"),
        profile_look_(loop, "phalanx-profile", "looking at the ranks"),
        asked_look_(loop, "phalanx-look", "sampling the ranks"),
        dig_look_(loop, "phalanx-dig", "dumping the stacks of the ranks"),
        builds_look_(loop, "phalanx-clean", "the cleanup of old builds"),
        mesh_listener_(loop),
        mesh_dialer_(loop, [this](const wire::Dialed& dialed) { outbox_.control(dialed); }),
        sweep_(loop, [this](const wire::Swept& swept) { outbox_.control(swept); }),
        copy_(loop, outbox_),
        host_environment_(parse_environment(environ)) {}

  base::Status open();
  int code() const { return code_; }

 private:
  void say_hello();
  bool read_input();  // false: nothing more now
  void handle(const wire::Frame& frame);
  void prepare(wire::Prepare message);
  void prepared(base::Result<std::string> looked);
  void open_store(const wire::OpenStore& message);
  void reach(const wire::Reach& message);
  void start(const wire::Start& message);
  void sample(const wire::Sample& message);
  void dig_into(const wire::Dig& message);
  bool ours(const os::ProcessInfo& process) const;  // of a look at this machine or at a rank's file, not of a rank
  void signal(int signal_number);
  void finish();
  void finish_step();
  std::vector<os::ProcessInfo> rank_family(bool& probe_left, std::string* unseen = nullptr) const;
  void watch_store();
  void note_family(os::milliseconds again);
  void begin_lease();
  void renew_lease(const wire::Ping& ping);
  void order_guard();
  void tend_builds(bool at_start);
  void stamp_copy();
  std::string cgroup_path() const { return cgroup_ ? cgroup_->path() : ""; }
  void check_lease();
  os::Mono lease_now() const { return lease_clock_ == CLOCK_BOOTTIME ? os::boot_now() : os::mono_now(); }
  void end_everything(const std::string& why);

  const std::string build_;
  os::Loop& loop_;
  GuardLink guard_;
  ContainerWatch container_;
  Outbox outbox_;
  Ranks ranks_;
  ProbeDuty probe_;
  UsageWatch pulse_;
  ForkedLook prepare_look_, sample_look_, profile_look_, asked_look_, dig_look_, builds_look_;
  MeshListener mesh_listener_;
  MeshDialer mesh_dialer_;
  SweepDuty sweep_;
  CopyDuty copy_;
  Environment host_environment_;
  wire::FrameReader reader_;
  std::optional<wire::Prepare> job_;
  Environment job_environment_;
  std::string program_;
  std::optional<Scratch> scratch_;
  std::optional<machine::OwnCgroup> cgroup_;  // of the ranks, where one can be made
  FamilyRecord family_record_;
  std::unique_ptr<store::Server> store_;
  os::Endpoint store_endpoint_;
  std::unique_ptr<ReachCheck> reach_;
  std::set<uint32_t> not_connected_;
  os::Mono started_;  // the ranks
  Lease lease_;
  int lease_clock_ = CLOCK_BOOTTIME;
  uint32_t cpus_ = 1;
  std::vector<os::InterfaceAddress> addresses_;
  std::optional<os::Mono> finishing_since_;
  uint32_t killed_ = 0;
  int code_ = 0;
};

}  // namespace phalanx::agent
