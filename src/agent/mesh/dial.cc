#include "agent/mesh/dial.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/mesh/dialer.h"

namespace phalanx::agent {
namespace {

constexpr size_t kEchoBytes = 64;
constexpr size_t kChunk = 256 << 10;
constexpr int kWritesPerTurn = 8;
// A refusal that took so long was not a reset (before Linux 5.8, where ICMP is not told): the first packet's answer was lost on us while
// the socket was busy, and the second, a second later, was heard.
constexpr os::milliseconds kNotAtOnce{900};
constexpr os::milliseconds kNeighbourPatience{2500};

// At least so many bytes that nothing on the way can compress; made once, as far as they are needed.
std::string_view noise(size_t bytes) {
  static std::string made;
  static uint64_t x = 88172645463325252ULL;  // xorshift64 (Marsaglia, "Xorshift RNGs", 2003)
  made.reserve(bytes + sizeof(x));
  while (made.size() < bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    made.append(reinterpret_cast<const char*>(&x), sizeof(x));
  }
  return made;
}

std::string echo_request(uint32_t bytes) {
  std::string out = "E";
  out.append(reinterpret_cast<const char*>(&bytes), 4);
  return out;
}

}  // namespace

MeshDial::MeshDial(os::Loop& loop, const wire::Dial& request, const wire::DialTarget& target, std::function<void()> over_callback)
    : loop_(loop), request_(request), where_{target.address, static_cast<uint16_t>(target.port)}, over_(std::move(over_callback)) {
  link_.to = target.to;
  link_.master_port = target.master_port;
  begun_ = moved_ = os::mono_now();
  os::Attempt attempt = os::connect_tcp_traced(where_);
  if (!attempt.fd.valid()) {
    int error = attempt.error_number;
    timer_ = loop_.after(os::nanoseconds(0), [this, error] {
      timer_ = 0;
      fail_connect(error);
    });
    return;
  }
  fd_ = std::move(attempt.fd);
  base::Result<os::WatchId> watch = loop_.watch(fd_.get(), EPOLLOUT, [this](uint32_t events) { turn(events); });
  if (watch.ok()) watch_ = *watch;
  arm();
}

MeshDial::~MeshDial() {
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  if (burst_timer_) loop_.cancel(burst_timer_);
}

void MeshDial::arm() {
  if (timer_) loop_.cancel(timer_);
  timer_ = loop_.after(os::milliseconds(request_.timeout_ms), [this] {
    timer_ = 0;
    on_silence();
  });
}

void MeshDial::turn(uint32_t events) {
  if (phase_ == Phase::kConnecting) {
    if (events & EPOLLERR)
      if (std::optional<os::IcmpError> icmp = os::take_icmp_error(fd_.get())) return on_icmp(*icmp);
    int error = os::connect_outcome(fd_.get());
    if (error != 0) return fail_connect(error);
    if (!(events & EPOLLOUT)) return;
    return connected();
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
    while (phase_ != Phase::kOver && read_more()) {}
  if (phase_ != Phase::kOver) write_more();
}

void MeshDial::connected() {
  link_.connect_ns = (os::mono_now() - begun_).count();
  base::Result<os::Endpoint> local = os::local_endpoint(fd_.get());
  if (local.ok()) link_.local_address = local->address;
  base::Result<std::string> nonce = wire::fresh_nonce();
  if (!nonce.ok()) return over(wire::LinkOutcome::kError, EAGAIN);
  nonce_ = std::move(nonce).value();
  phase_ = Phase::kProving;
  awaited_ = kMeshAnswerBytes;
  received_ = 0;
  arm();
  send(std::string(kMeshHello) + nonce_);
}

void MeshDial::send(std::string bytes) {
  out_ = std::exchange(proof_, {}) + bytes;
  written_ = 0;
  write_more();
}

void MeshDial::write_more() {
  for (int i = 0; i < kWritesPerTurn && phase_ != Phase::kOver; ++i) {
    std::string_view rest = std::string_view(out_).substr(written_);
    if (rest.empty() && phase_ == Phase::kBurst) rest = noise(kChunk);
    if (rest.empty()) break;
    os::IoStep step = os::write_step(fd_.get(), rest.data(), rest.size());
    if (step.kind == os::IoStep::kWouldBlock) break;
    if (step.kind != os::IoStep::kBytes)
      return over(phase_ == Phase::kProving ? wire::LinkOutcome::kStranger : wire::LinkOutcome::kError,
                  step.error_number ? step.error_number : EPIPE);
    if (written_ < out_.size()) written_ += step.bytes;
  }
  if (phase_ == Phase::kOver) return;
  bool more = written_ < out_.size() || phase_ == Phase::kBurst;
  loop_.rewatch(watch_, EPOLLIN | (more ? EPOLLOUT : 0U));
}

bool MeshDial::read_more() {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(kChunk);
  os::IoStep step = os::read_step(fd_.get(), buffer.get(), kChunk);
  if (step.kind == os::IoStep::kWouldBlock) return false;
  if (step.kind != os::IoStep::kBytes) {
    bool proven = phase_ != Phase::kProving;
    over(proven ? wire::LinkOutcome::kError : wire::LinkOutcome::kStranger,
         step.kind == os::IoStep::kError ? step.error_number : ECONNRESET);
    return false;
  }
  if (phase_ == Phase::kProving) hello_.append(buffer.get(), std::min(step.bytes, kMeshAnswerBytes));
  take(step.bytes);
  return true;
}

void MeshDial::take(size_t bytes) {
  received_ += bytes;
  moved_ = os::mono_now();
  // Something else may greet with fewer bytes than are awaited, and then wait for us.
  size_t seen = std::min(hello_.size(), kMeshHello.size());
  if (phase_ == Phase::kProving && hello_.compare(0, seen, kMeshHello.substr(0, seen)) != 0) return over(wire::LinkOutcome::kStranger);
  if (received_ < awaited_) return;
  switch (phase_) {
    case Phase::kProving:
      if (!prove()) return over(wire::LinkOutcome::kStranger);
      phase_ = Phase::kEchoing;
      return request_.echoes > 0 ? next_echo() : begin_payload();
    case Phase::kEchoing: {
      int64_t took = (moved_ - echo_begun_).count();
      link_.round_trip_ns = link_.round_trip_ns == 0 ? took : std::min(link_.round_trip_ns, took);
      return ++echoes_ < request_.echoes ? next_echo() : begin_payload();
    }
    case Phase::kPayload: {
      int64_t took = std::max<int64_t>(1, (moved_ - phase_begun_).count());
      // There and back one after the other, in part at the same time: a floor, where no burst follows.
      link_.bytes_per_second = static_cast<int64_t>(static_cast<double>(request_.payload_bytes) * 1e9 / static_cast<double>(took));
      return begin_burst();
    }
    default: return;
  }
}

bool MeshDial::prove() {
  std::string_view rest = hello_;
  if (!rest.starts_with(kMeshHello) || rest.size() != kMeshAnswerBytes) return false;
  rest.remove_prefix(kMeshHello.size());
  std::string_view theirs = rest.substr(0, wire::kNonceBytes);
  if (!wire::proves(rest.substr(wire::kNonceBytes), wire::Side::kListener, request_.key, nonce_, theirs)) return false;
  proof_ = wire::proof_of(wire::Side::kDialer, request_.key, nonce_, theirs);
  return true;
}

void MeshDial::next_echo() {
  arm();
  received_ = 0;
  awaited_ = kEchoBytes;
  echo_begun_ = os::mono_now();
  send(echo_request(kEchoBytes).append(noise(kEchoBytes).substr(0, kEchoBytes)));
}

void MeshDial::begin_payload() {
  if (request_.payload_bytes == 0) return begin_burst();
  phase_ = Phase::kPayload;
  phase_begun_ = moved_ = os::mono_now();
  acknowledged_ = os::tcp_progress(fd_.get()).acknowledged_bytes;
  received_ = 0;
  awaited_ = request_.payload_bytes;
  std::string bytes = echo_request(request_.payload_bytes);
  bytes.append(noise(request_.payload_bytes).substr(0, request_.payload_bytes));
  arm();
  send(std::move(bytes));
}

void MeshDial::begin_burst() {
  if (request_.burst_ms == 0) return over(wire::LinkOutcome::kOk);
  phase_ = Phase::kBurst;
  if (timer_) loop_.cancel(timer_);
  timer_ = 0;
  phase_begun_ = os::mono_now();
  acknowledged_ = os::tcp_progress(fd_.get()).acknowledged_bytes;
  burst_timer_ = loop_.after(os::milliseconds(request_.burst_ms), [this] {
    burst_timer_ = 0;
    end_burst();
  });
  send("B");
}

// What the peer has acknowledged by now; what is still in our buffers is thrown away with the connection.
void MeshDial::end_burst() {
  uint64_t passed = os::tcp_progress(fd_.get()).acknowledged_bytes - acknowledged_;
  int64_t took = std::max<int64_t>(1, (os::mono_now() - phase_begun_).count());
  link_.bytes_per_second = static_cast<int64_t>(static_cast<double>(passed) * 1e9 / static_cast<double>(took));
  over(wire::LinkOutcome::kOk);
}

void MeshDial::on_silence() {
  switch (phase_) {
    case Phase::kConnecting:
      return over(os::neighbour_is_silent(where_.address) ? wire::LinkOutcome::kUnreachable : wire::LinkOutcome::kTimeout, ETIMEDOUT);
    case Phase::kPayload: break;
    default: return over(wire::LinkOutcome::kSilent, ETIMEDOUT);
  }
  uint64_t acknowledged = os::tcp_progress(fd_.get()).acknowledged_bytes;
  bool moving = acknowledged > acknowledged_ || os::mono_now() - moved_ < os::milliseconds(request_.timeout_ms);
  if (!moving) return over(wire::LinkOutcome::kStalled, ETIMEDOUT);
  acknowledged_ = acknowledged;
  if (os::mono_now() - phase_begun_ < MeshDialer::kSlowest) return arm();
  link_.bytes_per_second =
      static_cast<int64_t>(static_cast<double>(received_) * 1e9 / static_cast<double>((os::mono_now() - phase_begun_).count()));
  over(wire::LinkOutcome::kOk);
}

void MeshDial::on_icmp(const os::IcmpError& error) {
  if (!error.v6 && error.type == 3) {  // RFC 792, RFC 1812
    switch (error.code) {
      case 0:
      case 6: return over(wire::LinkOutcome::kNoRoute, error.error_number);
      case 2:
      case 3: return over(wire::LinkOutcome::kRejected, error.error_number);
      case 9:
      case 10:
      case 13: return over(wire::LinkOutcome::kProhibited, error.error_number);
      case 1:
      case 7: return over(wire::LinkOutcome::kUnreachable, error.error_number);
      default: return;  // not the last word
    }
  }
  if (error.v6 && error.type == 1) {  // RFC 4443
    static constexpr wire::LinkOutcome kOutcomes[] = {
        wire::LinkOutcome::kNoRoute,  wire::LinkOutcome::kProhibited, wire::LinkOutcome::kUnreachable, wire::LinkOutcome::kUnreachable,
        wire::LinkOutcome::kRejected, wire::LinkOutcome::kProhibited, wire::LinkOutcome::kProhibited};
    if (error.code >= 0 && error.code < 7) return over(kOutcomes[error.code], error.error_number);
  }
}

void MeshDial::fail_connect(int error_number) {
  os::nanoseconds took = os::mono_now() - begun_;
  switch (error_number) {
    case ECONNREFUSED: return over(took > kNotAtOnce ? wire::LinkOutcome::kRejected : wire::LinkOutcome::kRefused, error_number);
    case ENETUNREACH: return over(wire::LinkOutcome::kNoRoute, error_number);
    case EHOSTUNREACH:
    case EHOSTDOWN:
      if (!fd_.valid()) return over(wire::LinkOutcome::kNoRoute, error_number);  // our own routing table says so
      return over(took > kNeighbourPatience || os::neighbour_is_silent(where_.address) ? wire::LinkOutcome::kUnreachable
                                                                                       : wire::LinkOutcome::kProhibited,
                  error_number);
    case EACCES:
    case EPERM: return over(wire::LinkOutcome::kProhibited, error_number);  // our own firewall
    case ETIMEDOUT: return over(wire::LinkOutcome::kTimeout, error_number);
    default: return over(wire::LinkOutcome::kError, error_number);
  }
}

void MeshDial::over(wire::LinkOutcome outcome, int error_number) {
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kConnecting) link_.connect_ns = (os::mono_now() - begun_).count();
  phase_ = Phase::kOver;
  link_.outcome = outcome;
  link_.error_number = static_cast<uint32_t>(error_number);
  if (fd_.valid()) {
    os::TcpProgress progress = os::tcp_progress(fd_.get());
    link_.segments = static_cast<int64_t>(progress.segments);
    link_.retransmits = static_cast<int64_t>(progress.retransmits);
    os::reset_on_close(fd_.get());
  }
  if (watch_) loop_.unwatch(watch_);
  if (timer_) loop_.cancel(timer_);
  if (burst_timer_) loop_.cancel(burst_timer_);
  watch_ = timer_ = burst_timer_ = 0;
  fd_.reset();
  over_();
}

}  // namespace phalanx::agent
