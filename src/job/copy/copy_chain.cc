#include "job/copy/copy_chain.h"

#include <algorithm>

#include "base/check.h"

namespace phalanx::job {
namespace {

constexpr size_t kTimes = 64;

}  // namespace

CopyChain::CopyChain(std::vector<Member> members, std::vector<std::string> keys, Send send) : send_(std::move(send)) {
  PHALANX_CHECK(members.size() >= 2 && keys.size() + 1 == members.size());
  for (size_t n = 0; n < members.size(); ++n) {
    if (places_.size() <= members[n].host) places_.resize(members[n].host + 1, SIZE_MAX);
    places_[members[n].host] = n;
    nodes_.emplace_back();
    nodes_[n].member = std::move(members[n]);
    if (n > 0) nodes_[n].key = std::move(keys[n - 1]);
  }
}

size_t CopyChain::place_of(size_t host) const {
  PHALANX_CHECK(host < places_.size() && places_[host] != SIZE_MAX);
  return places_[host];
}

// Who gets from the launcher what this one gets.
size_t CopyChain::head_of(size_t n) const {
  while (nodes_[n].link == Link::kUp) --n;
  return n;
}

// Behind the last that is fed by way of this one.
size_t CopyChain::end_of(size_t n) const {
  for (++n; is_up(n);) ++n;
  return n;
}

// By this one and those that it feeds.
uint64_t CopyChain::least_taken(size_t n) const {
  uint64_t least = UINT64_MAX;
  for (size_t i = n, end = end_of(n); i < end; ++i)
    if (!nodes_[i].over) least = std::min(least, nodes_[i].taken);
  return least;
}

uint64_t CopyChain::window_of(size_t n) const { return std::min(kWindow + (end_of(n) - n) * kWindowPerHost, kMostWindow); }

template <typename Message>
void CopyChain::tell(size_t n, const Message& message) {
  if (nodes_[n].over) return;
  std::string frames;
  (void)wire::encode(frames, message);
  send_(nodes_[n].member.host, frames);
}

void CopyChain::set_link(size_t n, Link link) {
  auto making = [](Link one) { return one == Link::kListening || one == Link::kDialing; };
  making_ += making(link) ? 1 : 0;
  making_ -= making(nodes_[n].link) ? 1 : 0;
  nodes_[n].link = link;
}

void CopyChain::begin(os::Mono now) {
  begun_ = now;
  for (size_t n = 1; n < nodes_.size(); ++n) {
    set_link(n, Link::kListening);
    tell(n, wire::CopyListen{nodes_[n].member.address, nodes_[n].key});
  }
}

bool CopyChain::fed(size_t host) const {
  const Link link = nodes_[place_of(host)].link;
  return link == Link::kUp || link == Link::kLosing;
}

bool CopyChain::may_send(size_t host) const {
  const size_t n = place_of(host);
  if (!is_up(n + 1)) return true;
  const uint64_t least = least_taken(n);
  return least == UINT64_MAX || nodes_[n].sent < least + window_of(n);
}

// Bytes that have reached what feeds this one.
uint64_t CopyChain::there_for(size_t n) const { return is_up(n) && !nodes_[n - 1].over ? nodes_[n - 1].taken : nodes_[head_of(n)].sent; }

// Before there is more for this one: where it has taken all, its time begins now.
void CopyChain::touch(size_t n, os::Mono now) {
  if (n < nodes_.size() && nodes_[n].taken == there_for(n)) nodes_[n].moved = now;
}

void CopyChain::sent(size_t host, uint64_t bytes, os::Mono now) {
  const size_t n = place_of(host);
  touch(n, now);
  nodes_[n].sent += bytes;
  most_sent_ = std::max(most_sent_, nodes_[n].sent);
}

bool CopyChain::needed(size_t host) const {
  const size_t n = place_of(host) + 1;
  return is_up(n) && !nodes_[n].over;
}

void CopyChain::on_listening(size_t host, const wire::CopyListening& message) {
  const size_t n = place_of(host);
  if (nodes_[n].link != Link::kListening) return;
  if (!message.outcome.ok || message.port == 0 || nodes_[n - 1].over) return set_link(n, Link::kNone);
  set_link(n, Link::kDialing);
  tell(n - 1, wire::CopyPassOn{nodes_[n].member.address, message.port, nodes_[n].key});
}

void CopyChain::on_passing(size_t host, const wire::CopyPassing& message) {
  const size_t n = place_of(host) + 1;
  if (n >= nodes_.size() || nodes_[n].link != Link::kDialing) return;
  if (message.outcome.ok && !nodes_[n].over) set_link(n, Link::kUp);
  else cut(n, begun_);
}

// The link to this one feeds it no more.
void CopyChain::lose(size_t n, os::Mono now) {
  nodes_[n].sent = nodes_[head_of(n)].sent;
  nodes_[n].cut_at = now;
  nodes_[n].full_since.reset();
  set_link(n, Link::kLosing);
}

void CopyChain::cut(size_t n, os::Mono now) {
  if (n >= nodes_.size() || nodes_[n].link == Link::kNone || nodes_[n].link == Link::kLosing) return;
  if (nodes_[n].link == Link::kUp) lose(n, now);
  else set_link(n, Link::kNone);
  if (nodes_[n].over) set_link(n, Link::kNone);
  tell(n - 1, wire::CopyPassOn{});
  tell(n, wire::CopyListen{});
}

std::optional<CopyChain::Taken> CopyChain::on_taken(size_t host, const wire::CopyTaken& message, os::Mono now) {
  const size_t n = place_of(host);
  Node& node = nodes_[n];
  Taken taken;
  if ((message.bytes < node.taken && !message.lost) || message.bytes > most_sent_) return std::nullopt;
  if (message.bytes > node.taken) {
    if (is_up(n + 1)) touch(n + 1, now);
    if (fed(host)) taken.bytes = message.bytes - node.taken;
    node.moved = now;
    node.times.emplace_back(now, message.bytes);
    if (node.times.size() > kTimes) node.times.pop_front();
  }
  // What it has thrown away, because it was damaged, it gets again; those behind it do not need it twice.
  const bool again = message.bytes < node.taken;
  if (again) {
    cut(n + 1, now);
    node.times.clear();
  }
  node.taken = message.bytes;
  if (!message.lost) return taken;
  if (node.link == Link::kUp) {
    lose(n, now);
    tell(n - 1, wire::CopyPassOn{});
  }
  if (node.link != Link::kLosing && !again) return taken;
  // One that the launcher feeds ignores what is still under way until it hears this.
  if (node.link != Link::kLosing) tell(n, wire::CopyListen{});
  set_link(n, Link::kNone);
  node.sent = node.taken;
  node.moved = now;
  taken.from = node.taken;
  return taken;
}

void CopyChain::on_over(size_t host, bool failed, os::Mono now) {
  const size_t n = place_of(host);
  nodes_[n].over = true;
  if (failed || nodes_[n].link != Link::kUp) cut(n, now);
  if (nodes_[n].link == Link::kLosing) set_link(n, Link::kNone);
  if (failed) cut(n + 1, now);
}

// Whether this one holds up the chain before it: the bytes that waited for it when the window was full took the one before it far less
// time.
bool CopyChain::is_slow(size_t n, os::Mono now) {
  Node& node = nodes_[n];
  if (n == 0 || node.link != Link::kUp || node.over || slow_ == kMostSlow) return false;
  const Node& before = nodes_[n - 1];
  if (!node.full_since) {
    if (before.taken < node.taken + window_of(head_of(n)) / 2 || before.times.empty()) return false;
    auto at = std::find_if(before.times.begin(), before.times.end(), [&](const auto& one) { return one.second >= node.taken; });
    if (at == before.times.end()) return false;
    node.full_since = now;
    node.goal = before.taken;
    node.allowed = std::max<os::nanoseconds>(kSlow, kSlower * (before.times.back().first - at->first));
    return false;
  }
  if (node.taken >= node.goal) node.full_since.reset();
  return node.full_since && now - *node.full_since > node.allowed;
}

void CopyChain::forgive(os::nanoseconds pause) {
  begun_ = begun_ + pause;
  for (Node& node : nodes_) {
    node.moved = node.moved + pause;
    node.cut_at = node.cut_at + pause;
    if (node.full_since) *node.full_since = *node.full_since + pause;
  }
}

void CopyChain::tick(os::Mono now) {
  if (ticked_.ns != 0 && now - ticked_ > kPause) forgive(now - ticked_);
  ticked_ = now;
  for (size_t n = 1; n < nodes_.size(); ++n)
    if (now - begun_ > kSetup && (nodes_[n].link == Link::kListening || nodes_[n].link == Link::kDialing)) cut(n, now);
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    if (node.link == Link::kLosing) {
      if (now - node.cut_at > kAnswer) cut(n + 1, now);
      continue;
    }
    const bool stalls = !node.over && node.taken < there_for(n) && now - node.moved > kStall, slow = !stalls && is_slow(n, now);
    if (!stalls && !slow) continue;
    slow_ += slow ? 1 : 0;
    cut(n, now);
    cut(n + 1, now);
  }
}

}  // namespace phalanx::job
