// One fault in one training on two hosts of the test cluster, under one launcher: what the user reads, how soon, what is left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "faults.h"
#include "leftovers.h"
#include "torchrun_words.h"

namespace phalanx::bench {

inline constexpr testbed::milliseconds kGone{2000};         // after the end, when what still runs counts as left over
inline constexpr testbed::milliseconds kInterrupt{10'000};  // for a launcher to end on Ctrl-C

struct Setting {
  std::string phalanx;                // the program
  std::string scripts;                // the folder of trainer.py and torchrun.py
  testbed::milliseconds cap{20'000};  // how long to wait for a launcher that says nothing
};

struct Trial {
  std::optional<double> seconds;  // from the fault to the prompt, on every terminal; nothing: not before the cap, when Ctrl-C was pressed
  bool spoke = false;             // something came on stderr since the fault, before the cap
  bool named = false;             // the right one, and no other
  Named rank = Named::kNone;      // torchrun
  std::string says;               // "RUN-SEGFAULT h2 rank 1", "h1: rank 0, exit code 1; h2: rank 1, SIGSEGV", ""
  std::vector<std::string> left;
};

// Each makes a cluster of its own. They fail when the fault could not be put in.
base::Result<Trial> under_phalanx(const Setting& setting, const testbed::InjectedFault& fault);
// As a user with a terminal on each host starts it: one torchrun per host, at the same time, default timeouts, no restarts.
base::Result<Trial> under_torchrun(const Setting& setting, const testbed::InjectedFault& fault);

}  // namespace phalanx::bench
