// How much effort goes into packing what is copied. A link of 1 Gbit/s and more is kept busy only by the least; where packing would wait
// for the link, more effort has less to send. What more or less would give is tried for a moment now and then, and kept if the contents
// then go out faster: a host may be what is waited for, contents may not pack, and the link may change. Not tried where the processors of
// this machine have other work, as when launcher and hosts share them.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/packing.h"
#include "machine/ranks/use.h"
#include "os/clock.h"

namespace phalanx::job {

class PackingEffort {
 public:
  using Cpus = std::function<machine::CpuTimes()>;
  explicit PackingEffort(Cpus cpus = machine::cpu_times) : cpus_(std::move(cpus)) {}

  base::Effort now() const { return static_cast<base::Effort>(number_); }
  // A block of so many bytes, not none, was read and packed from `begin` to `end`. Looks at the effort again about four times a second.
  void made(uint64_t bytes, os::Mono begin, os::Mono end);

 private:
  // More or less of it, being tried.
  struct Trial {
    size_t before = 0;  // the number that was left
    double rate = 0;    // bytes per second with that
  };
  void begin_again(os::Mono at, machine::CpuTimes cpus);
  void judge(double rate);

  Cpus cpus_;
  size_t number_ = 0;  // of the effort
  std::optional<Trial> trial_;
  bool kept_up_ = true;                               // the last trial that was kept was of more
  size_t looks_ = 0, next_trial_ = 0, patience_ = 0;  // in looks
  // Since the last look:
  os::Mono since_;
  machine::CpuTimes cpus_before_;
  uint64_t bytes_ = 0;
  os::nanoseconds busy_{};
};

// What all streams of a thread pack with.
struct Packers {
  PackingEffort effort;
  base::Packer packer;
  std::string packed;  // used again
};

}  // namespace phalanx::job
