// After a run: a new login to each of its hosts, to look for what is left (wire::Sweep), and for GPU memory that a process of the run
// still holds. What is left is killed. Needs no launcher of the run to be alive.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hosts/connect/opener.h"
#include "os/loop.h"
#include "wire/check_messages.h"
#include "wire/control_messages.h"

namespace phalanx::job {

struct GpuHeld {
  int64_t gpu = 0;  // NVML's index
  int64_t pid = 0;
  int64_t bytes = 0;
};
// What is known of one host. Nothing is left there if `answered`, every process of `swept` is gone, all could be looked at,
// and no GPU is held.
struct SweptHost {
  std::string name;
  std::optional<base::Error> error;  // it could not be reached, or did not answer
  bool answered = false;
  bool gpus_seen = false;  // it has GPUs, and they were asked
  wire::Swept swept;
  std::vector<GpuHeld> held;
  bool clean() const;
};

struct SweepRequest {
  std::string run_id;
  os::milliseconds patience{0};              // for what ends by itself, before it is killed
  std::vector<std::set<int64_t>> pids = {};  // per host: of the run, as it was known; for the GPUs
};

class HostSweep {
 public:
  // transports: per target. All must outlive the object.
  HostSweep(os::Loop& loop, std::vector<hosts::Target> targets, const std::vector<const hosts::Transport*>& transports,
            hosts::Payload& payload, hosts::OpenerOptions options, SweepRequest wish);
  // Runs the loop until every host has answered or cannot.
  base::Result<std::vector<SweptHost>> run();

 private:
  struct Host {
    SweptHost found;
    bool asked = false, over = false;
    os::Mono deadline;
  };
  void on_frame(size_t h, const wire::Frame& frame);
  void take(size_t h, const wire::Swept& swept);
  void take(size_t h, const wire::Probed& probed);
  void settle(size_t h);
  void check_deadlines();
  void await(size_t h, os::milliseconds patience);

  os::Loop& loop_;
  SweepRequest wish_;
  std::vector<Host> hosts_;
  hosts::Opener opener_;
};

}  // namespace phalanx::job
