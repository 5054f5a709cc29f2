// Chains over hosts: which there are, and their frames.
#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "job/copy/copy_to_hosts.h"
#include "wire/challenge.h"

namespace phalanx::job {
namespace {

constexpr uint64_t kWorthAChain = 16 << 20;   // bytes of contents; less is there before the links are
constexpr os::milliseconds kGatherFor{1000};  // after the first host has asked

}  // namespace

// A host that lacks much waits a moment for others that lack the same.
void CopyToHosts::hold(size_t h) {
  Host& host = hosts_[h];
  if (hosts_.size() < 2 || host.total < kWorthAChain || host.address.empty() || host.chain) return;
  host.held = true;
  if (!gathering_) gathering_ = loop_.after(kGatherFor, [this] { make_chains(); });
  make_chains_if_all_asked();
}

void CopyToHosts::make_chains_if_all_asked() {
  if (all_asked()) make_chains();
}

bool CopyToHosts::lack_the_same(const Host& a, const Host& b) {
  return a.contents == b.contents || a.contents->wanted() == b.contents->wanted();
}

void CopyToHosts::make_chains() {
  loop_.cancel(gathering_);
  gathering_ = 0;
  for (size_t h = 0; h < hosts_.size(); ++h) {
    if (!hosts_[h].held) continue;
    std::vector<size_t> members;
    for (size_t other = h; other < hosts_.size(); ++other)
      if (hosts_[other].held && lack_the_same(hosts_[h], hosts_[other])) members.push_back(other);
    for (size_t member : members) hosts_[member].held = false;
    if (members.size() > 1) make_chain(members);
  }
  pump_all();
}

void CopyToHosts::make_chain(const std::vector<size_t>& members) {
  std::vector<CopyChain::Member> nodes;
  std::vector<std::string> keys;
  for (size_t h : members) {
    nodes.push_back({h, hosts_[h].address});
    base::Result<std::string> one = wire::fresh_nonce(), two = wire::fresh_nonce();
    if (!one.ok() || !two.ok()) return;  // without keys each gets its contents from here
    static_assert(wire::kKeyBytes == 2 * wire::kNonceBytes);
    if (nodes.size() > 1) keys.push_back(*one + *two);
  }
  auto send = [this](size_t h, const std::string& frames) {
    if (hosts::Connection* connection = opener_.connection(h)) connection->send(frames);
  };
  auto chain = std::make_shared<CopyChain>(std::move(nodes), std::move(keys), send);
  for (size_t h : members) hosts_[h].chain = chain;
  chain->begin(os::mono_now());
}

void CopyToHosts::pump_all() {
  for (size_t h = 0; h < hosts_.size(); ++h)
    if (!hosts_[h].over && hosts_[h].said_hello) pump(h);
}

void CopyToHosts::pump_two(size_t head, size_t h) {
  if (!hosts_[head].over) pump(head);
  if (head != h && !hosts_[h].over) pump(h);
}

bool CopyToHosts::on_chain_frame(size_t h, const wire::Frame& frame) {
  if (!hosts_[h].chain) return false;
  CopyChain& chain = *hosts_[h].chain;
  base::Status taken = base::ok();
  const size_t head = chain.head(h);  // which may have waited for this one
  if (frame.type == wire::FrameType::kCopyListening) {
    base::Result<wire::CopyListening> message = wire::decode<wire::CopyListening>(frame.payload);
    if (message.ok()) chain.on_listening(h, *message);
    else taken = std::move(message).error();
  } else if (frame.type == wire::FrameType::kCopyPassing) {
    base::Result<wire::CopyPassing> message = wire::decode<wire::CopyPassing>(frame.payload);
    if (message.ok()) chain.on_passing(h, *message);
    else taken = std::move(message).error();
  } else if (frame.type == wire::FrameType::kCopyTaken) {
    taken = take_taken(h, frame);
  } else {
    return false;
  }
  if (!taken.ok()) fail(h, std::move(taken).error());
  if (frame.type != wire::FrameType::kCopyTaken) pump_all();
  else pump_two(head, h);
  return true;
}

base::Status CopyToHosts::take_taken(size_t h, const wire::Frame& frame) {
  Host& host = hosts_[h];
  TRY_ASSIGN(const wire::CopyTaken message, wire::decode<wire::CopyTaken>(frame.payload));
  const std::optional<CopyChain::Taken> taken = host.chain->on_taken(h, message, os::mono_now());
  if (!taken)
    return base::fail(base::ErrorKind::kInternal,
                      fmt::format("{}: protocol error: the agent reported contents that were not sent", host.copied.name));
  host.copied.bytes += taken->bytes;
  host.copied.passed_on = host.copied.passed_on || taken->bytes > 0;
  if (!taken->from) return base::ok();
  Wanted wanted = host.contents->wanted();
  host.place = place_at(wanted, *taken->from);
  host.copied.files = host.place.next + (host.place.from > 0 ? 1 : 0);
  host.contents = stream_from(std::move(wanted), host.place);
  host.block = 0;
  return base::ok();
}

// Of the contents, one after the other; of the partial one what was missing.
ContentStream::Place CopyToHosts::place_at(const Wanted& wanted, uint64_t byte) const {
  for (size_t i = 0; i < wanted.entries.size(); ++i) {
    const uint64_t there = wanted.entries[i] == wanted.partial ? wanted.from : 0;
    const uint64_t size = request_.manifest->entries[wanted.entries[i]].size - there;
    if (byte < size) return {i, byte == 0 ? 0 : byte + there};
    byte -= size;
  }
  return {wanted.entries.size(), 0};
}

}  // namespace phalanx::job
