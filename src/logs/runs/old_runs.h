// Removes old runs from a folder of runs (logs/runs/run_directory.h), so that it does not grow without bound.
//
// A run is removed only where everything says that it is ours and over: a real folder of this user that only this user can write to;
// a run.json of this user that says so of the same id, ended and when; no lock on its events and no launcher that lives; nothing in the
// folder that Phalanx does not write. Whatever cannot be read or looked up means that the run stays.
// A run without a verdict is over where its launcher is known to be dead: a process of this machine that does not exist any more, or one
// from before the last boot. Its agents end by themselves when the lease is over, an hour after the launcher's last word at most. So such a
// run counts as ended when its files were last written to, and stays for a day after that, because `phalanx stop` needs its record.
// Neither the run that `latest` names nor our newest runs are ever looked at.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace phalanx::logs {

// All limits of what is kept of earlier runs.
struct Keeping {
  size_t runs = 1000;          // the newest runs that are kept: --keep-runs; 0: everything is kept
  size_t whatever_age = 100;   // of them, those that no age removes
  std::chrono::days age{180};  // after its end
  bool list_only = false;      // nothing is removed; `removing` hears of what would be
};

// Before a run is removed, and again if it could not be removed completely (problem: why). False: stop.
using Removing = std::function<bool(const std::string& id, const std::string& why, const std::string& problem)>;

// base: absolute. current: the id of the run that is starting. wall_ns: now. Waits for the disk.
void remove_old_runs(const std::string& base, const std::string& current, const Keeping& keeping, int64_t wall_ns,
                     const Removing& removing);

}  // namespace phalanx::logs
