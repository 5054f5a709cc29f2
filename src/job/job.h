// What the user asked for, ready to be run: no text to parse, nothing left to look up on this machine.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/accepted.h"
#include "hosts/connect/transport.h"
#include "job/choose/choose.h"
#include "job/remembered.h"
#include "job/stall.h"
#include "wire/messages.h"

namespace phalanx::job {

struct HostRequest {
  hosts::Target target;                   // destination empty: this machine
  std::optional<int> slots;               // as the host list says
  std::vector<int> selected;              // slot ids by --include/--exclude; empty: all
  std::vector<int64_t> former_pids = {};  // ranks of the attempt before, dead: their GPU memory is waited for
};

// Ranks per host, where the host list gives no slots.
enum class RanksRule { kAuto, kGpu, kCpu, kCount };

// What the checks before the start may do: refuse, only tell, or not be made at all.
enum class Preflight { kStrict, kWarn, kOff };

// Silence of the launcher after which an agent ends everything on its host, unless --lease says otherwise. Why 30 s:
// docs/design/supervision.md.
inline constexpr std::chrono::milliseconds kDefaultLease{30'000};

// What a project file (docs/formats/project-file.md) has set. Values of variables are left out: they may be secrets.
struct ProjectValue {
  std::string key;  // "iface", "env.NCCL_DEBUG"
  std::string value;
  int line = 0;
};
struct ProjectUse {
  std::string file;  // empty: none
  std::vector<ProjectValue> values;
  std::vector<std::string> unset;  // "phalanx.yaml:7:3: API_KEY": variables without a value; only of plan and check
};

// What travels to the hosts is the JobSpec; the rest is the launcher's own.
struct Job : wire::JobSpec {
  std::string run_id;
  std::string token;    // 16 random bytes; each attempt has its own. Hosts get keys that are derived from it (wire/challenge.h)
  std::string build;    // of this program; an agent of another is refused. Empty: any
  std::string boot_id;  // of this machine; empty: unknown
  int attempt = 0;      // which try of the run this is: 0 is the first
  std::vector<HostRequest> hosts;
  std::vector<HostRequest> spares;  // take the place of a host that is lost or unfit, in this order
  int least_hosts = 0;              // goes on with so many where no spare is left; 0: with all or not at all
  int max_restarts = 0;
  bool hides_gpus = false;           // by the user's word the program is to use none: CUDA_VISIBLE_DEVICES=, accelerate's --cpu
  bool or_cpus = false;              // the program computes on CPUs by itself where there are fewer GPUs than ranks: the engine
  std::optional<RanksRule> rule;     // none: the host's slots, else kAuto; given, it wins over slots
  int count = 0;                     // of kCount
  std::vector<std::string> origins;  // of each entry of `set`: where its value comes from (cli/passed_on.h)
  ProjectUse project;
  std::vector<std::string> exported;  // names in `set` that default exports pass on, asked for by nobody
  bool serve_store = true;
  std::string master_address;                      // empty: chosen
  int master_port = 0;                             // 0: the kernel chooses
  std::string port_run;                            // our own run that goes on and has its store on that port of the first host; or empty
  std::chrono::milliseconds grace{10'000};         // from SIGTERM to SIGKILL, when the operator stops the run
  std::chrono::milliseconds failure_grace{5'000};  // the same for the other ranks after a failure
  std::chrono::milliseconds lease = kDefaultLease;
  StallOptions stall;
  bool dry_run = false;  // stop when the plan stands
  Preflight preflight = Preflight::kOff;
  bool check_only = false;                               // stop when the checks are made: `check`, `bench fabric`
  std::vector<std::string> only;                         // codes or prefixes to look for; empty: all
  std::vector<doctor::Acceptance> accepted;              // findings that neither refuse nor warn
  GpuRequest wish;                                       // --gpus, --iface
  std::shared_ptr<const std::set<std::string>> to_copy;  // absolute paths that --sync would bring to every host; plan and check
  std::vector<std::string> paths;                        // to be looked at besides those the command names
  std::chrono::milliseconds burst{0};                    // of the mesh test, per pair; 0: chosen so that all take less than half a second
  std::chrono::milliseconds probe_deadline{1500};
  std::shared_ptr<const Remembered> remembered;  // what an earlier run's checks found; none, or without hosts: they are waited for
};

}  // namespace phalanx::job
