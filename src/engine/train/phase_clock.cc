#include "engine/train/phase_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "engine/torch_version.h"

// Marks that tell the time are there from libtorch 2.4 on.
#if PHALANX_TORCH_SINCE(2, 4)
#define PHALANX_TIMED_MARKS
#include <c10/core/Event.h>
#endif

namespace phalanx::engine::train {

#ifdef PHALANX_TIMED_MARKS

struct PhaseClock::Marks {
  at::Device device;
  struct Mark {
    c10::Event event;
    double StepTimes::* part;  // that ended here; null: a start
  };
  std::vector<Mark> waiting{};

  void put(double StepTimes::* part) {
    c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    waiting.push_back({std::move(event), part});
  }
  void add_to(StepTimes* times) {
    size_t done = 0;
    for (; done + 1 < waiting.size() && waiting[done + 1].event.query(); ++done)
      if (double StepTimes::* part = waiting[done + 1].part) times->*part += waiting[done].event.elapsedTime(waiting[done + 1].event) / 1e3;
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(done));
  }
};

PhaseClock::PhaseClock(at::Device device) : marks_(device.is_cpu() ? nullptr : new Marks{device}) {}

#else

struct PhaseClock::Marks {
  void put(double StepTimes::*) {}
  void add_to(StepTimes*) {}
};

PhaseClock::PhaseClock(at::Device) {}

#endif

PhaseClock::~PhaseClock() = default;

void PhaseClock::start() {
  if (marks_) marks_->put(nullptr);
  last_ = Clock::now();
}

void PhaseClock::end(double StepTimes::* part) {
  if (marks_) return marks_->put(part);
  const auto before = std::exchange(last_, Clock::now());
  waiting_.*part += std::chrono::duration<double>(last_ - before).count();
}

void PhaseClock::add_to(StepTimes* times) {
  if (marks_) return marks_->add_to(times);
  *times += std::exchange(waiting_, {});
}

}  // namespace phalanx::engine::train
