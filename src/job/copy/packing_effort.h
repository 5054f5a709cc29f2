// How much effort goes into packing what is copied: as much as the link leaves time for. A link of 1 Gbit/s and more is kept busy only by
// the least; where packing would wait for the link, it goes on with more effort and less to send. Not where the processors have other work,
// as when launcher and hosts share them.
#pragma once

#include <functional>

#include "base/packing.h"
#include "machine/ranks/use.h"
#include "os/clock.h"

namespace phalanx::job {

class PackingEffort {
 public:
  using Cpus = std::function<machine::CpuTimes()>;
  explicit PackingEffort(Cpus cpus = machine::cpu_times) : cpus_(std::move(cpus)) {}

  base::Effort now() const { return now_; }
  // A block of so many bytes, not none, was read and packed from `begin` to `end`. Looks at the effort again about four times a second.
  void made(uint64_t bytes, os::Mono begin, os::Mono end);

 private:
  void begin_again(os::Mono at, machine::CpuTimes cpus);

  Cpus cpus_;
  base::Effort now_ = base::Effort::kLeast;
  // Of a byte, to read and pack it: what it took when it was last measured; before that, as measured elsewhere (base/packing.h).
  double ns_[base::kEfforts] = {2.5, 5, 11};
  // Since the last look:
  os::Mono since_;
  machine::CpuTimes cpus_before_;
  uint64_t bytes_ = 0;
  os::nanoseconds busy_{};
};

}  // namespace phalanx::job
