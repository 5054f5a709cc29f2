#include "agent/mesh/reach.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "store/protocol.h"
#include "wire/challenge.h"

namespace phalanx::agent {

std::string interface_of(const std::string& address) {
  base::Result<std::vector<os::InterfaceAddress>> all = os::interface_addresses();
  if (!all.ok()) return "";
  for (const os::InterfaceAddress& a : *all)
    if (a.address == address) return a.interface;
  return "";
}

ReachCheck::ReachCheck(os::Loop& loop, os::Endpoint store, std::string key, os::milliseconds timeout,
                       std::function<void(wire::Reached)> done)
    : loop_(loop), store_(std::move(store)), key_(std::move(key)), done_(std::move(done)), timeout_(timeout) {
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
  if (stage_ == Stage::kConnecting) {
    base::Result<std::string> nonce = wire::fresh_nonce();
    if (!nonce.ok()) return fail_with(EAGAIN);
    nonce_ = std::move(nonce).value();
    std::string greeting = std::string(store::kProbeMagic) + nonce_;
    os::write_step(socket_.get(), greeting.data(), greeting.size());  // 20 bytes always fit a fresh socket
    stage_ = Stage::kChallenging;
    return loop_.rewatch(watch_, EPOLLIN);
  }
  char block[256];
  os::IoStep step = os::read_step(socket_.get(), block, sizeof(block));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return fail_as_stranger();
  heard_.append(block, step.bytes);
  answered();
}

void ReachCheck::answered() {
  constexpr std::string_view kMagic = store::kProbeMagic;
  bool challenging = stage_ == Stage::kChallenging;
  std::string_view start = challenging ? kMagic : store::kProbeAnswer;
  size_t seen = std::min(heard_.size(), start.size());
  if (heard_.compare(0, seen, start.substr(0, seen)) != 0) return fail_as_stranger();
  if (heard_.size() < (challenging ? kMagic.size() + wire::kNonceBytes + wire::kProofBytes : start.size())) return;
  if (challenging) {
    std::string_view theirs = std::string_view(heard_).substr(kMagic.size(), wire::kNonceBytes);
    std::string_view proof = std::string_view(heard_).substr(kMagic.size() + wire::kNonceBytes);
    if (!wire::proves(proof, wire::Side::kListener, key_, nonce_, theirs)) return fail_as_stranger();
    std::string ours = wire::proof_of(wire::Side::kDialer, key_, nonce_, theirs);
    os::write_step(socket_.get(), ours.data(), ours.size());
    stage_ = Stage::kProving;
    heard_.clear();
    return;
  }
  wire::Reached result;
  base::Result<os::Endpoint> local = os::local_endpoint(socket_.get());
  if (local.ok()) result.interface = interface_of(local->address);
  finish(std::move(result));
}

void ReachCheck::fail_as_stranger() {
  wire::Reached result;
  result.outcome = {
      false, base::fail(base::ErrorKind::kUnfit, fmt::format("another program answers at {}", store_.str()))
                 .because("the program did not prove that it holds the run's key: it is a proxy, or another host has the same address")};
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
    case ECONNREFUSED: why = "connection refused: a firewall rejects the port, or the address belongs to another host"; break;
    case EHOSTUNREACH:
    case ENETUNREACH: why = "no route to it from this host"; break;
    default: why = std::strerror(error_number);
  }
  result.outcome = {false, base::fail(base::ErrorKind::kUnfit, fmt::format("cannot connect to {}", store_.str())).because(why)};
  finish(std::move(result));
}

void ReachCheck::finish(wire::Reached result) {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  watch_ = timer_ = 0;
  socket_.reset();
  done_(std::move(result));
}

}  // namespace phalanx::agent
