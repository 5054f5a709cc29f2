#include "agent/reach.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"

namespace agent {

std::string interface_of(const std::string& address) {
  base::Result<std::vector<os::InterfaceAddress>> all = os::interface_addresses();
  if (!all.ok()) return "";
  for (const os::InterfaceAddress& a : *all)
    if (a.address == address) return a.interface;
  return "";
}

ReachCheck::ReachCheck(os::Loop& loop, os::Endpoint store, std::string token, os::milliseconds timeout,
                       std::function<void(wire::Reached)> done)
    : loop_(loop), store_(std::move(store)), token_(std::move(token)), done_(std::move(done)), timeout_(timeout) {
  timer_ = loop_.after(timeout, [this] {
    timer_ = 0;
    fail_with(ETIMEDOUT);
  });
  base::Result<os::Fd> socket = os::connect_tcp_start(store_);
  if (!socket.ok()) {
    int error = errno;
    loop_.cancel(timer_);
    timer_ = loop_.after(os::nanoseconds(0), [this, error] {
      timer_ = 0;
      fail_with(error);
    });
    return;
  }
  socket_ = std::move(socket).value();
  base::Result<os::WatchId> watch = loop_.watch(socket_.get(), EPOLLOUT, [this](uint32_t) { on_ready(); });
  if (watch.ok()) watch_ = *watch;
}

ReachCheck::~ReachCheck() {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
}

void ReachCheck::on_ready() {
  if (int error = os::connect_outcome(socket_.get())) return fail_with(error);
  if (!sent_) {
    sent_ = true;
    std::string proof = "PHLX" + token_;
    os::write_step(socket_.get(), proof.data(), proof.size());  // 20 bytes always fit a fresh socket
    loop_.rewatch(watch_, EPOLLIN);
    return;
  }
  char answer[8];
  os::IoStep step = os::read_step(socket_.get(), answer, sizeof(answer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  wire::Reached result;
  if (step.kind != os::IoStep::kBytes || std::string_view(answer, std::min<size_t>(step.bytes, 2)) != "OK") {
    result.outcome = {false, base::fail(base::ErrorKind::kUnfit, fmt::format("something else answers at {}", store_.str()))
                                 .because("it did not know the run's token; a proxy, or another host has the same address")};
    return finish(std::move(result));
  }
  base::Result<os::Endpoint> local = os::local_endpoint(socket_.get());
  if (local.ok()) result.interface = interface_of(local->address);
  finish(std::move(result));
}

void ReachCheck::fail_with(int error_number) {
  wire::Reached result;
  std::string why;
  switch (error_number) {
    case ETIMEDOUT:
      why = fmt::format("no answer within {}: a firewall drops the packets, or the address is not routed here",
                        base::format_duration(timeout_));
      break;
    case ECONNREFUSED: why = "refused: a firewall rejects the port, or the address belongs to another host"; break;
    case EHOSTUNREACH:
    case ENETUNREACH: why = "there is no route to it from here"; break;
    default: why = std::strerror(error_number);
  }
  result.outcome = {false, base::fail(base::ErrorKind::kUnfit, "cannot connect to " + store_.str()).because(why)};
  finish(std::move(result));
}

void ReachCheck::finish(wire::Reached result) {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  watch_ = timer_ = 0;
  socket_.reset();
  done_(std::move(result));
}

}  // namespace agent
