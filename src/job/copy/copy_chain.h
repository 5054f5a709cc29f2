// A chain over hosts that lack the same contents: the launcher sends them to the first, and each passes them on to the next
// (agent/copy_link.h), so that they cross the launcher's network once. Where a link cannot be made, breaks, stalls or is far slower than
// the rest, the host behind it gets them from the launcher, from where it stands; those behind that host stay behind it. So nothing depends
// on a chain but time.
//
// Counts bytes of contents. Pure: frames and times come in, frames go out through `send`.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/clock.h"
#include "wire/copy_messages.h"

namespace phalanx::job {

class CopyChain {
 public:
  static constexpr os::milliseconds kSetup{2000};   // for the links to be made
  static constexpr os::milliseconds kStall{5000};   // a host that takes nothing that is there for it so long leaves the chain
  static constexpr os::milliseconds kAnswer{2000};  // for a host to say where it stands; then those behind it do without it
  // One that needs so long, and so many times as long as the one before it, for the same bytes leaves it too; so many of a chain.
  static constexpr os::milliseconds kSlow{8000};
  static constexpr int kSlower = 4, kMostSlow = 2;
  static constexpr os::milliseconds kPause{2000};  // longer between two ticks: this process stood still, and no host is to blame
  // Bytes under way between the launcher and the last host: so many, and more for each host.
  static constexpr uint64_t kWindow = 12 << 20, kWindowPerHost = 512 << 10, kMostWindow = 48 << 20;

  struct Member {
    size_t host;
    std::string address;  // of the host, where the one before it can connect
  };
  using Send = std::function<void(size_t host, const std::string& frames)>;
  // members: at least two, in the order of the chain. keys: one per link, of wire::kKeyBytes. Nothing is sent before begin().
  CopyChain(std::vector<Member> members, std::vector<std::string> keys, Send send);

  void begin(os::Mono now);
  // No link is being made any more: the launcher can send.
  bool ready() const { return making_ == 0; }
  // The host gets the contents from the one before it.
  bool fed(size_t host) const;
  bool leads(size_t host) const { return place_of(host) == 0; }
  // Whom the launcher feeds so that this host gets something.
  size_t head(size_t host) const { return nodes_[head_of(place_of(host))].member.host; }
  // The launcher may send more to this host, which it feeds.
  bool may_send(size_t host) const;
  void sent(size_t host, uint64_t bytes, os::Mono now);
  // The host passes on to one that is not over: it must stay.
  bool needed(size_t host) const;

  void on_listening(size_t host, const wire::CopyListening& message);
  void on_passing(size_t host, const wire::CopyPassing& message);
  struct Taken {
    uint64_t bytes = 0;            // more than at the last message, of a host that another feeds
    std::optional<uint64_t> from;  // the launcher feeds it now, from this byte
  };
  // Nothing: the host claims what was not sent to it.
  std::optional<Taken> on_taken(size_t host, const wire::CopyTaken& message, os::Mono now);
  // The host has everything, or (failed) will not.
  void on_over(size_t host, bool failed, os::Mono now);
  void tick(os::Mono now);

 private:
  // kLosing: cut, but the host has not said yet where it stands.
  enum class Link { kNone, kListening, kDialing, kUp, kLosing };
  struct Node {
    Member member;
    std::string key;          // of the link to it
    Link link = Link::kNone;  // to it
    uint64_t sent = 0;        // to it, where the link is not up
    uint64_t taken = 0;
    os::Mono moved;   // when it last took some, or when there was something again that it could take
    os::Mono cut_at;  // kLosing
    bool over = false;
    std::deque<std::pair<os::Mono, uint64_t>> times;  // when it had taken how much, lately
    // The window was full because of it: since when; where it has to come, and until when, to be no slower than it may be.
    std::optional<os::Mono> full_since;
    uint64_t goal = 0;
    os::nanoseconds allowed{};
  };
  size_t place_of(size_t host) const;
  size_t head_of(size_t n) const;
  size_t end_of(size_t n) const;
  bool is_up(size_t n) const { return n < nodes_.size() && nodes_[n].link == Link::kUp; }
  uint64_t least_taken(size_t n) const;
  uint64_t window_of(size_t n) const;
  uint64_t there_for(size_t n) const;
  void touch(size_t n, os::Mono now);
  void set_link(size_t n, Link link);
  void lose(size_t n, os::Mono now);
  void cut(size_t n, os::Mono now);
  bool is_slow(size_t n, os::Mono now);
  void forgive(os::nanoseconds pause);
  template <typename Message>
  void tell(size_t n, const Message& message);

  std::vector<Node> nodes_;
  std::vector<size_t> places_;  // by host
  size_t making_ = 0;           // links that are being made
  Send send_;
  os::Mono begun_, ticked_;
  uint64_t most_sent_ = 0;  // to any of them
  int slow_ = 0;            // that have left for it
};

}  // namespace phalanx::job
