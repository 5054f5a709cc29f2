// The contents that a host asked for, in blocks on their way to it. Hosts that lack the same share one stream: each file is read, and each
// block compressed, once for all of them. Blocks that no host needs any more go; so do the oldest of many, and a host that is so far behind
// continues with a stream of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/copy/packing_effort.h"
#include "sync/scan.h"

namespace phalanx::job {

// What a host asked for.
struct Wanted {
  std::vector<uint32_t> entries;  // of the manifest
  uint32_t partial = 0;           // of this one the bytes before `from` are there
  uint64_t from = 0;
  bool operator==(const Wanted&) const = default;
};

class ContentStream {
 public:
  struct Place {
    size_t next = 0;    // of Wanted::entries
    uint64_t from = 0;  // a byte of it
  };
  struct Block {
    std::string frames;  // for the wire
    uint64_t bytes = 0;  // of contents
    uint64_t files = 0;  // that begin in it
    Place after;
  };
  // manifest, aside (may be null): as in CopyRequest. packers: of all streams of this thread. They outlive the object. place: where it
  // begins.
  ContentStream(std::string root, const sync::Manifest& manifest, const sync::Aside* aside, Packers& packers, Wanted wanted, Place place);

  const Wanted& wanted() const { return wanted_; }
  bool holds(size_t number) const { return number >= first_; }
  // Null: the contents are complete before it. Call only what it holds; valid until the next call.
  const Block* block(size_t number);
  void forget_before(size_t number);

 private:
  bool make_block();
  void put_contents(std::string& frames, std::string_view bytes);

  const sync::Manifest& manifest_;
  Packers& packers_;
  Wanted wanted_;
  sync::ContentReader content_;
  Place place_;                   // of what is read next
  bool begun_ = false;            // the content of place_.next is being read
  std::unique_ptr<char[]> read_;  // of the block that is being made
  std::vector<Block> blocks_;
  size_t first_ = 0;  // the number of blocks_.front()
};

}  // namespace phalanx::job
