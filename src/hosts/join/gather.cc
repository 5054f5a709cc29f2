#include "hosts/join/gather.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/listener_pause.h"
#include "os/socket_owner.h"
#include "wire/codec.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;

constexpr size_t kMostStrangers = 64;  // connections that have not proved themselves
constexpr std::chrono::milliseconds kProofPatience{10'000};
constexpr size_t kMostWarnings = 20;
constexpr size_t kMostTextBytes = 4096;

struct Caller {
  std::string address, origin;
  std::unique_ptr<wire::SealedSocket> socket;
  std::optional<MemberFacts> facts;
  os::Mono came;
  bool gone = false;
};

class Gathering {
 public:
  Gathering(const GatherOptions& options, os::Loop& loop) : options_(options), loop_(loop) {}

  base::Result<std::vector<JoinedNode>> run() {
    base::Result<os::Listener> listening = os::listen_tcp(options_.listen);
    if (!listening.ok()) return cannot_listen(listening.error());
    if (base::Result<os::SocketOwners> owners = os::SocketOwners::open(listening->endpoint); owners.ok())
      owners_ = std::move(owners).value();
    listener_ = std::move(listening->fd);
    TRY_ASSIGN(watch_, loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept(); }));
    for (int number : {SIGINT, SIGTERM, SIGHUP})
      TRY(loop_.on_signal(number, [this](const signalfd_siginfo&) {
        give_up(base::fail(ErrorKind::kInterrupted, "interrupted while waiting for nodes"));
      }));
    loop_.after(options_.patience, [this] { give_up(missing_nodes()); });
    loop_.every(os::milliseconds(1000), [this] { forget_the_slow(); });
    options_.say(fmt::format("node 0 of {} listens at {}; waiting for {}", options_.own.nodes, options_.listen.str(), missing()));
    while (!failed_ && here() + 1 < options_.own.nodes) {
      loop_.poll(os::milliseconds(1000));
      sweep();
    }
    os::stop_listening(listener_);
    if (failed_) return refuse_all();
    return hand_over();
  }

 private:
  base::Error cannot_listen(const base::Error& error) const {
    return base::fail(ErrorKind::kUnreachable, fmt::format("node 0 cannot listen at {}", options_.listen.str()))
        .because(error.message)
        .with_hint(fmt::format("ss -ltnp sport = :{}", options_.listen.port));
  }

  uint32_t here() const {
    return static_cast<uint32_t>(std::count_if(callers_.begin(), callers_.end(), [](const auto& one) { return one->facts && !one->gone; }));
  }

  std::string missing() const {
    std::vector<bool> there(options_.own.nodes);
    for (const auto& one : callers_)
      if (one->facts && !one->gone && one->facts->node_rank < there.size()) there[one->facts->node_rank] = true;
    std::string list;
    uint32_t shown = 0, count = 0;
    for (uint32_t rank = 1; rank < options_.own.nodes; ++rank) {
      if (there[rank]) continue;
      ++count;
      if (shown++ < 16) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
    }
    return fmt::format("node{} {}{}", count == 1 ? "" : "s", list, shown > 16 ? ", ..." : "");
  }

  base::Error missing_nodes() const {
    base::Error error = base::fail(ErrorKind::kTimeout, fmt::format("{} did not join node 0 at {} within {}", missing(),
                                                                    options_.listen.str(), base::format_duration(options_.patience)));
    error.cause = strangers_.empty() ? "every machine needs the same line with a node rank of its own, and the same master address and port"
                                     : "not let in: " + base::join(strangers_, "; ");
    error.hint = fmt::format("phalanx run --nnodes {} --node-rank RANK --master-addr {} --master-port {} ...", options_.own.nodes,
                             options_.listen.address, options_.listen.port);
    return error;
  }

  void accept() {
    for (int i = 0; i < os::kAcceptsPerTurn; ++i) {
      base::Result<os::Accepted> accepted = os::accept_tcp(listener_.get());
      if (!accepted.ok()) return pause_.begin(watch_);
      if (!accepted->fd.valid()) return;
      if (!os::trusted(owners_, *accepted)) {  // closed at once
        mention(fmt::format("{} is another user of this machine", accepted->peer.address));
        continue;
      }
      base::Result<std::string> nonce = wire::fresh_nonce();
      if (!nonce.ok()) return give_up(nonce.error());
      make_room();
      auto caller = std::make_unique<Caller>();
      Caller* one = caller.get();
      one->address = accepted->peer.address;
      one->origin = origin_of(one->address);
      one->came = os::mono_now();
      one->socket = std::make_unique<wire::SealedSocket>(
          loop_, std::move(accepted->fd), wire::SealedStream(wire::Side::kListener, options_.token, *nonce),
          wire::SealedSocket::Handlers{.record = [this, one](const wire::Record& record) { take(*one, record); },
                                       .end = [this, one](ErrorKind kind, const std::string& why) { leave(*one, kind, why); }});
      callers_.push_back(std::move(caller));
      one->socket->begin();
    }
  }

  // Whoever holds the token is never sent away to make room, and who floods takes the room from himself: the origin with the most
  // strangers gives up its oldest. That goes at once, so that callers_ does not grow while connections wait. No caller's own handler
  // leads here.
  void make_room() {
    size_t strangers = 0;
    std::map<std::string_view, size_t> from;
    for (const auto& one : callers_)
      if (!one->gone && !one->facts) ++strangers, ++from[one->origin];
    if (strangers < kMostStrangers) return;
    auto leaves = callers_.end();  // callers_ stand in the order in which they came
    for (auto one = callers_.begin(); one != callers_.end(); ++one)
      if (!(*one)->gone && !(*one)->facts && (leaves == callers_.end() || from[(*one)->origin] > from[(*leaves)->origin])) leaves = one;
    callers_.erase(leaves);
  }

  void forget_the_slow() {
    for (const auto& one : callers_)
      if (!one->gone && !one->facts && os::mono_now() - one->came > kProofPatience) one->gone = true;
  }

  void sweep() {
    std::erase_if(callers_, [](const auto& one) { return one->gone; });
  }

  void leave(Caller& one, ErrorKind kind, const std::string& why) {
    one.gone = true;
    if (failed_) return;
    if (one.facts) return options_.say(fmt::format("node {} ({}) has left: {}", one.facts->node_rank, one.facts->hostname, why));
    // It says nothing more after it has seen our proof: to whom the proof is wrong, we have another token.
    const bool other_token = kind == ErrorKind::kUnreachable || (kind == ErrorKind::kTimeout && !one.socket->open());
    const std::string text =
        other_token ? fmt::format("{} has another token, or gave up", one.address) : fmt::format("{} is no node of this run", one.address);
    mention(text);
  }

  void mention(const std::string& text) {
    if (strangers_.size() >= kMostWarnings || std::find(strangers_.begin(), strangers_.end(), text) != strangers_.end()) return;
    strangers_.push_back(text);
    options_.say(text);
  }

  void take(Caller& one, const wire::Record& record) {
    if (failed_ || one.gone) return;
    if (one.facts || record.type != wire::RecordType::kFacts) return;  // Ctrl-C before the start: the node then closes
    base::Result<MemberFacts> facts = decode_member_facts(record.payload);
    if (!facts.ok()) {
      one.gone = true;
      return;
    }
    std::string problem = disagreement(options_.own, *facts);
    for (const auto& other : callers_)
      if (problem.empty() && !other->gone && other->facts && other->facts->node_rank == facts->node_rank)
        problem = fmt::format("node rank {} is given twice: on {} ({}) and on {} ({})", facts->node_rank, other->facts->hostname,
                              other->address, facts->hostname, one.address);
    one.facts = *std::move(facts);
    if (!problem.empty())
      return give_up(base::fail(ErrorKind::kUsage, problem).with_hint("start the same line on every machine; only the node rank differs"));
    const std::string waiting = here() + 1 < options_.own.nodes ? "waiting for " + missing() : "";
    options_.say(fmt::format("node {} ({}, {}) is here{}", one.facts->node_rank, one.facts->hostname, one.address,
                             waiting.empty() ? "" : "; " + waiting));
    if (waiting.empty()) return;
    for (const auto& other : callers_)
      if (other->facts && !other->gone) other->socket->send(wire::RecordType::kWaiting, waiting);
  }

  void give_up(base::Error error) {
    if (!failed_) failed_ = std::move(error);
  }

  base::Error refuse_all() {
    const JoinVerdict verdict{static_cast<uint32_t>(base::exit_code(failed_->kind)),
                              failed_->message + (failed_->hint.empty() ? "" : "\n\nhint: " + failed_->hint)};
    for (const auto& one : callers_) {
      if (!one->facts || one->gone) continue;
      JoinedNode node{one->facts->node_rank, one->facts->hostname, one->address, {}, one->socket->state()};
      node.socket = one->socket->take_socket();
      tell(node, wire::RecordType::kRefused, encode(verdict));
    }
    return *std::move(failed_);
  }

  std::vector<JoinedNode> hand_over() {
    std::vector<JoinedNode> nodes;
    for (const auto& one : callers_) {
      if (!one->facts || one->gone) continue;
      JoinedNode node{one->facts->node_rank, one->facts->hostname, one->address, {}, one->socket->state()};
      node.socket = one->socket->take_socket();
      nodes.push_back(std::move(node));
    }
    std::sort(nodes.begin(), nodes.end(), [](const JoinedNode& a, const JoinedNode& b) { return a.node_rank < b.node_rank; });
    return nodes;
  }

  const GatherOptions& options_;
  os::Loop& loop_;
  os::Fd listener_;
  os::WatchId watch_ = 0;
  os::ListenerPause pause_{loop_};
  std::optional<os::SocketOwners> owners_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<std::string> strangers_;
  std::optional<base::Error> failed_;
};

}  // namespace

std::string origin_of(const std::string& address) {
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &v6) != 1 || IN6_IS_ADDR_V4MAPPED(&v6)) return address;
  return {reinterpret_cast<const char*>(v6.s6_addr), 8};
}

base::Result<std::vector<JoinedNode>> gather(const GatherOptions& options) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  return Gathering(options, *loop).run();
}

void tell(JoinedNode& node, wire::RecordType type, std::string_view payload) {
  base::Result<wire::SealedStream> stream = wire::SealedStream::resume(node.state);
  if (!stream.ok() || !node.socket.valid()) return;
  const std::string bytes = stream->seal(type, payload);
  const os::Mono until = os::mono_now() + os::milliseconds(1000);
  for (size_t sent = 0; sent < bytes.size();) {
    const os::IoStep step = os::write_step(node.socket.get(), bytes.data() + sent, bytes.size() - sent);
    if (step.kind == os::IoStep::kBytes) sent += step.bytes;
    else if (step.kind != os::IoStep::kWouldBlock || os::mono_now() > until) break;
    pollfd ready{node.socket.get(), POLLOUT, 0};
    if (sent < bytes.size()) ::poll(&ready, 1, 200);
  }
  node.socket.reset();
}

std::string encode(const JoinVerdict& verdict) {
  std::string out;
  wire::Encoder encoder(out);
  encoder.u32(verdict.exit_code);
  encoder.str(std::string_view(verdict.text).substr(0, kMostTextBytes));
  return out;
}

base::Result<JoinVerdict> decode_join_verdict(std::string_view payload) {
  wire::Decoder decoder(payload);
  JoinVerdict verdict;
  verdict.exit_code = decoder.u32();
  verdict.text = decoder.str();
  if (!decoder.done() || verdict.exit_code > 255 || verdict.text.size() > kMostTextBytes)
    return base::fail(base::ErrorKind::kInternal, "the end of the run cannot be read");
  return verdict;
}

}  // namespace phalanx::hosts
