// A run that goes on, but slowly: what the ranks use, laid beside each other. Pure. Each thing is told once.
//
// The CPU time of ranks comes every few seconds (wire::Pulse); a state counts when it has held for kSlowWindows of them in a row. What the
// GPUs do is looked at now and then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "machine/gpu/facts.h"
#include "wire/sample_messages.h"

namespace phalanx::diagnosis {

inline constexpr int kSlowWindows = 8;  // of 2.5 s

class Stragglers {
 public:
  // A pulse of one host.
  void take(const wire::Pulse& pulse);
  void forget() { ranks_.clear(); }  // the ranks are gone
  // ranks: those that run, with their host. What is new since the last call.
  std::vector<Diagnosis> look(const std::map<int, size_t>& ranks);
  // The GPUs of one host while its ranks train, and the processes of its ranks. What is new.
  std::vector<Diagnosis> look_at_gpus(size_t host, const std::vector<machine::Gpu>& gpus, const std::set<int64_t>& pids);

 private:
  struct Use {
    std::vector<double> cpu, throttled, faults;  // of the last kSlowWindows: CPUs in use, part of the time held back, faults a second
  };
  void tell(std::vector<Diagnosis>& out, Diagnosis verdict);
  std::map<int, Use> ranks_;
  std::set<std::string> told_;
};

}  // namespace phalanx::diagnosis
