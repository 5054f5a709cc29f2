#include "engine/checkpoint/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace phalanx::engine::checkpoint {

Interrupt::Interrupt() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { PHALANX_CHECK(event_.valid()); }

void Interrupt::raise() {
  raised_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  PHALANX_CHECK(write(event_.get(), &one, sizeof(one)) == sizeof(one));
}

void Interrupt::wait(int fd, std::chrono::milliseconds patience) const {
  pollfd watched[2] = {{event_.get(), POLLIN, 0}, {fd, POLLIN, 0}};
  poll(watched, 2, static_cast<int>(patience.count()));
}

}  // namespace phalanx::engine::checkpoint
