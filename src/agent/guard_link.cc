#include "agent/guard_link.h"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/try.h"

namespace phalanx::agent {

GuardLink::GuardLink(os::Loop& loop, os::Fd orders, os::Fd answers, std::function<void(const std::string&)> lost)
    : loop_(loop), orders_(std::move(orders)), answers_(std::move(answers)), lost_(std::move(lost)), guard_(::getppid()) {}

GuardLink::~GuardLink() {
  if (watch_) loop_.unwatch(watch_);
  end_guard();
}

base::Status GuardLink::open() {
  TRY(os::set_nonblocking(orders_.get()));
  TRY(os::set_nonblocking(answers_.get()));
  TRY_ASSIGN(watch_, loop_.watch(answers_.get(), EPOLLIN, [this](uint32_t) { read_answers(); }));
  return base::ok();
}

// A pipe that is full belongs to a guard that does not read: the silence that follows tells.
void GuardLink::order(const GuardOrder& order) {
  os::write_step(orders_.get(), reinterpret_cast<const char*>(&order), sizeof(order));
  if (!waiting_since_) waiting_since_ = os::mono_now();
}

void GuardLink::read_answers() {
  char bytes[256];
  os::IoStep step = os::read_step(answers_.get(), bytes, sizeof(bytes));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return lost_("phalanx-guard was killed");
  waiting_since_.reset();
  woken_ = false;
}

void GuardLink::check(os::milliseconds patience, const std::function<void(const std::string&)>& told) {
  if (!waiting_since_ || given_up_) return;
  os::nanoseconds silence = os::mono_now() - *waiting_since_;
  if (silence > patience) {
    given_up_ = true;
    return lost_(fmt::format("phalanx-guard has not answered for {:.1f} s", static_cast<double>(silence.count()) / 1e9));
  }
  if (silence < kWake || woken_ || ::getppid() != guard_) return;
  woken_ = true;
  ::kill(guard_, SIGCONT);
  told("phalanx-guard did not answer and was sent SIGCONT: it had been stopped, or the host is overloaded");
}

void GuardLink::end_guard() {
  if (::getppid() == guard_) ::kill(guard_, given_up_ ? SIGKILL : SIGCONT);
}

}  // namespace phalanx::agent
