// A rank bound to CPUs: the agent takes them on itself while it starts the rank, which inherits them from its first instruction on.
#pragma once

#include <sched.h>

#include <string>

namespace phalanx::agent {

class CpuBinding {
 public:
  // cpus: a cpulist, "0-15,64-79"; empty: nothing is bound. Those that this process may not use are left out; where none is left, or the
  // list makes no sense, nothing is bound.
  explicit CpuBinding(const std::string& cpus);
  ~CpuBinding();  // the agent is as it was
  CpuBinding(const CpuBinding&) = delete;
  CpuBinding& operator=(const CpuBinding&) = delete;
  bool bound() const { return bound_; }

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

}  // namespace phalanx::agent
