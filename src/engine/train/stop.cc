#include "engine/train/stop.h"

#include <csignal>
#include <initializer_list>

namespace phalanx::engine::train {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t received = 0;

void mark(int signal_number) { received = signal_number; }

}  // namespace

void catch_stop_signals() {
  struct sigaction action{};
  action.sa_handler = mark;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (int signal_number : {SIGTERM, SIGINT}) sigaction(signal_number, &action, nullptr);
}

int stop_signal() { return received; }

}  // namespace phalanx::engine::train
