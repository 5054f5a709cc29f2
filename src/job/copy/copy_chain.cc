#include "job/copy/copy_chain.h"

#include <algorithm>

#include "base/check.h"

namespace phalanx::job {

CopyChain::CopyChain(std::vector<Member> members, std::vector<std::string> keys, Wanted wanted, Send send)
    : wanted_(std::move(wanted)), send_(std::move(send)) {
  PHALANX_CHECK(members.size() >= 2 && keys.size() + 1 == members.size());
  for (size_t n = 0; n < members.size(); ++n) {
    nodes_.emplace_back();
    nodes_[n].member = std::move(members[n]);
    if (n > 0) nodes_[n].key = std::move(keys[n - 1]);
  }
}

size_t CopyChain::place_of(size_t host) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& one) { return one.member.host == host; });
  PHALANX_CHECK(node != nodes_.end());
  return static_cast<size_t>(node - nodes_.begin());
}

// Who gets from the launcher what this one gets.
size_t CopyChain::head_of(size_t n) const {
  while (nodes_[n].link == Link::kUp) --n;
  return n;
}

// By this one and those that it feeds.
uint64_t CopyChain::least_taken(size_t n) const {
  uint64_t least = nodes_[n].over ? sent_to(head_of(n)) : nodes_[n].taken;
  for (++n; n < nodes_.size() && nodes_[n].link == Link::kUp; ++n)
    if (!nodes_[n].over) least = std::min(least, nodes_[n].taken);
  return least;
}

template <typename Message>
void CopyChain::tell(size_t n, const Message& message) {
  std::string frames;
  (void)wire::encode(frames, message);
  send_(nodes_[n].member.host, frames);
}

void CopyChain::begin(os::Mono now) {
  begun_ = now;
  for (size_t n = 1; n < nodes_.size(); ++n) {
    nodes_[n].link = Link::kListening;
    tell(n, wire::CopyListen{nodes_[n].member.address, nodes_[n].key});
  }
}

bool CopyChain::ready() const {
  return std::none_of(nodes_.begin(), nodes_.end(),
                      [](const Node& node) { return node.link == Link::kListening || node.link == Link::kDialing; });
}

bool CopyChain::fed(size_t host) const {
  const Link link = nodes_[place_of(host)].link;
  return link == Link::kUp || link == Link::kLosing;
}

bool CopyChain::may_send(size_t host) const {
  const size_t n = place_of(host);
  return n + 1 == nodes_.size() || nodes_[n + 1].link != Link::kUp || sent_to(n) < least_taken(n) + kWindow;
}

// Blocks that have reached what feeds this one.
uint64_t CopyChain::there_for(size_t n) const {
  return nodes_[n].link == Link::kUp && !nodes_[n - 1].over ? nodes_[n - 1].taken : sent_to(head_of(n));
}

// Before there is more for this one: where it has taken all, its time begins now.
void CopyChain::touch(size_t n, os::Mono now) {
  if (n < nodes_.size() && nodes_[n].taken == there_for(n)) nodes_[n].moved = now;
}

void CopyChain::sent(size_t host, const ContentStream::Block& block, os::Mono now) {
  const size_t n = place_of(host);
  touch(n, now);
  for (size_t i = n; i < nodes_.size(); ++i)
    if (i == n || (nodes_[i].link == Link::kLosing && nodes_[i].source == n))
      nodes_[i].steps.push_back({block.after, block.bytes, block.files});
  forget(n);
}

void CopyChain::forget(size_t n) {
  Node& head = nodes_[n];
  for (const uint64_t least = least_taken(n); head.first + 1 < least && !head.steps.empty(); ++head.first) head.steps.pop_front();
}

bool CopyChain::needed(size_t host) const {
  const size_t n = place_of(host) + 1;
  return n < nodes_.size() && nodes_[n].link == Link::kUp && !nodes_[n].over;
}

void CopyChain::on_listening(size_t host, const wire::CopyListening& message) {
  const size_t n = place_of(host);
  if (nodes_[n].link != Link::kListening) return;
  if (!message.outcome.ok || message.port == 0 || nodes_[n - 1].over) {
    nodes_[n].link = Link::kNone;
    return;
  }
  nodes_[n].link = Link::kDialing;
  tell(n - 1, wire::CopyPassOn{nodes_[n].member.address, message.port, nodes_[n].key});
}

void CopyChain::on_passing(size_t host, const wire::CopyPassing& message) {
  const size_t n = place_of(host) + 1;
  if (n >= nodes_.size() || nodes_[n].link != Link::kDialing) return;
  if (message.outcome.ok && !nodes_[n].over) nodes_[n].link = Link::kUp;
  else cut(n);
}

// The link to this one feeds it no more; of the blocks that were sent it keeps what it, or one behind it, may yet have to be given.
void CopyChain::lose(size_t n) {
  const size_t head = head_of(n);
  nodes_[n].steps = nodes_[head].steps;
  nodes_[n].first = nodes_[head].first;
  nodes_[n].source = head;
  nodes_[n].link = Link::kLosing;
  forget(head);
}

void CopyChain::cut(size_t n) {
  if (n >= nodes_.size() || nodes_[n].link == Link::kNone || nodes_[n].link == Link::kLosing) return;
  if (nodes_[n].link == Link::kUp) lose(n);
  if (nodes_[n].link != Link::kLosing || nodes_[n].over) nodes_[n].link = Link::kNone;
  if (!nodes_[n - 1].over) tell(n - 1, wire::CopyPassOn{});
  if (!nodes_[n].over) tell(n, wire::CopyListen{});
}

std::optional<CopyChain::Taken> CopyChain::on_taken(size_t host, const wire::CopyTaken& message, os::Mono now) {
  const size_t n = place_of(host), head = head_of(n);
  Node& node = nodes_[n];
  Taken taken;
  if (message.frames < node.taken || message.frames > sent_to(head)) return std::nullopt;
  if (message.frames > node.taken) {
    if (n + 1 < nodes_.size() && nodes_[n + 1].link == Link::kUp) touch(n + 1, now);
    for (uint64_t i = node.taken; fed(host) && i < message.frames; ++i) {
      taken.bytes += nodes_[head].steps[i - nodes_[head].first].bytes;
      taken.files += nodes_[head].steps[i - nodes_[head].first].files;
    }
    node.taken = message.frames;
    node.moved = now;
  }
  if (message.lost && node.link == Link::kUp) lose(n);
  if (message.lost && node.link == Link::kLosing) {
    while (sent_to(n) > node.taken) node.steps.pop_back();
    node.link = Link::kNone;
    taken.from = node.steps.empty() ? ContentStream::Place{} : node.steps.back().after;
  }
  forget(head_of(n));
  return taken;
}

void CopyChain::on_over(size_t host, bool failed) {
  const size_t n = place_of(host);
  nodes_[n].over = true;
  if (failed || nodes_[n].link != Link::kUp) cut(n);
  if (failed) cut(n + 1);
}

void CopyChain::tick(os::Mono now) {
  for (size_t n = 1; n < nodes_.size(); ++n)
    if (now - begun_ > kSetup && (nodes_[n].link == Link::kListening || nodes_[n].link == Link::kDialing)) cut(n);
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    if (node.over || node.link == Link::kLosing || node.taken >= there_for(n) || now - node.moved <= kStall) continue;
    cut(n);
    cut(n + 1);
  }
}

}  // namespace phalanx::job
