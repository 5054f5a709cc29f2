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
#include "diagnosis/hang/shares.h"
#include "machine/gpu/facts.h"
#include "wire/sample_messages.h"

namespace phalanx::diagnosis {

inline constexpr int kSlowWindows = 8;  // of 2.5 s

class Stragglers {
 public:
  void take(size_t host, const wire::Pulse& pulse);
  // ranks: those that run, with their host. steps: are made, so that who works while the others wait is late in each. What is new since the
  // last call.
  std::vector<Diagnosis> look(const std::map<int, size_t>& ranks, bool steps = true);
  // Whom the others wait for (diagnosis/hang/shares.h), by its cause where that is known. What is new.
  std::vector<Diagnosis> name(const Straggler& straggler);
  // The GPUs of one host while its ranks train, and the processes of its ranks. What is new.
  std::vector<Diagnosis> look_at_gpus(size_t host, const std::vector<machine::Gpu>& gpus, const std::set<int64_t>& pids);

 private:
  struct Use {
    std::vector<double> cpu, throttled, faults;  // of the last kSlowWindows: CPUs in use, part of the time held back, faults a second
    std::vector<double> delayed;                 // part of the time that its first thread waited for a CPU
  };
  void look_at_hosts(std::vector<Diagnosis>& out, const std::map<int, size_t>& ranks);
  void tell(std::vector<Diagnosis>& out, Diagnosis verdict);
  std::optional<Diagnosis> cause_of(const Straggler& straggler) const;
  std::map<int, Use> ranks_;
  std::map<size_t, std::vector<double>> stolen_;  // by host, of the last kSlowWindows: part of the CPUs' time
  std::set<std::string> told_;
  std::set<size_t> explained_;  // hosts of which something was told that makes their ranks late
};

}  // namespace phalanx::diagnosis
