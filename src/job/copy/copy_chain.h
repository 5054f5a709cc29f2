// A chain over hosts that lack the same contents: the launcher sends them to the first, and each passes them on to the next
// (agent/copy_link.h), so that they cross the launcher's network once. Where a link cannot be made, breaks or stalls, the host behind it
// gets them from the launcher, from where it stands; those behind that host stay behind it. So nothing depends on a chain but time.
//
// Counts blocks (content_stream.h), each of which is one frame. Pure: frames and times come in, frames go out through `send`.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/copy/content_stream.h"
#include "os/clock.h"
#include "wire/copy_messages.h"

namespace phalanx::job {

class CopyChain {
 public:
  static constexpr os::milliseconds kSetup{4000};  // for the links to be made
  static constexpr os::milliseconds kStall{5000};  // a host that takes nothing that is there for it so long leaves the chain
  static constexpr uint64_t kWindow = 48;          // blocks under way between the launcher and the last host

  struct Member {
    size_t host;
    std::string address;  // of the host, where the one before it can connect
  };
  using Send = std::function<void(size_t host, const std::string& frames)>;
  // members: at least two, in the order of the chain. keys: one per link, of wire::kKeyBytes. Nothing is sent before begin().
  CopyChain(std::vector<Member> members, std::vector<std::string> keys, Wanted wanted, Send send);

  const Wanted& wanted() const { return wanted_; }
  void begin(os::Mono now);
  // No link is being made any more: the launcher can send.
  bool ready() const;
  // The host gets the contents from the one before it.
  bool fed(size_t host) const;
  // The launcher may send the next block to this host, which it feeds.
  bool may_send(size_t host) const;
  void sent(size_t host, const ContentStream::Block& block, os::Mono now);
  // The host passes on to one that is not over: it must stay.
  bool needed(size_t host) const;

  void on_listening(size_t host, const wire::CopyListening& message);
  void on_passing(size_t host, const wire::CopyPassing& message);
  struct Taken {
    uint64_t bytes = 0, files = 0;             // more than at the last message, of a host that another has fed
    std::optional<ContentStream::Place> from;  // the launcher feeds it now, from here
  };
  // Nothing: the host claims what was not sent to it.
  std::optional<Taken> on_taken(size_t host, const wire::CopyTaken& message, os::Mono now);
  // The host has everything, or (failed) will not.
  void on_over(size_t host, bool failed);
  void tick(os::Mono now);

 private:
  // kLosing: cut, but the host has not said yet where it stands.
  enum class Link { kNone, kListening, kDialing, kUp, kLosing };
  struct Step {
    ContentStream::Place after;
    uint64_t bytes, files;
  };
  struct Node {
    Member member;
    std::string key;          // of the link to it
    Link link = Link::kNone;  // to it
    uint16_t port = 0;
    uint64_t taken = 0;
    os::Mono moved;  // when it last took one, or when there was one again that it could take
    bool over = false;
    // Where the link is not up: blocks that were sent, from the last one on that all behind it have; its number is `first`.
    std::deque<Step> steps;
    uint64_t first = 0;
    size_t source = 0;  // kLosing: whose blocks still come here
  };
  size_t place_of(size_t host) const;
  size_t head_of(size_t n) const;
  uint64_t sent_to(size_t n) const { return nodes_[n].first + nodes_[n].steps.size(); }
  uint64_t least_taken(size_t n) const;
  uint64_t there_for(size_t n) const;
  void touch(size_t n, os::Mono now);
  void forget(size_t n);
  void cut(size_t n);
  void lose(size_t n);
  template <typename Message>
  void tell(size_t n, const Message& message);

  std::vector<Node> nodes_;
  Wanted wanted_;
  Send send_;
  os::Mono begun_;
};

}  // namespace phalanx::job
