// Copies a folder to hosts over logins of its own, before a run (`--sync`) or to a path (`push`): each host is asked what it lacks, gets
// it, and builds its copy (wire/copy_messages.h; the far side is sync/incoming.h). Hosts go side by side, each at its own pace; where
// several lack the same and it is much, they pass it on to each other (copy_chain.h). And the end of a run: copies that nobody wrote into
// are given back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hosts/connect/opener.h"
#include "job/copy/content_stream.h"
#include "job/copy/copy_chain.h"
#include "os/loop.h"
#include "sync/last_list.h"
#include "sync/scan.h"
#include "sync/source_mark.h"
#include "wire/copy_messages.h"

namespace phalanx::job {

struct CopiedHost {
  std::string name;
  std::optional<base::Error> error;
  bool unreachable = false;       // it was never logged in to
  std::string path;               // of the copy
  uint64_t files = 0, bytes = 0;  // sent, by whomever
  uint64_t list_bytes = 0;        // sent of the list of files, or of what changed of it
  os::nanoseconds took{};
  bool passed_on = false;            // another host has sent it at least some of this
  bool kept = false;                 // after a release: somebody wrote into it
  uint64_t removed = 0, stayed = 0;  // after a push: files that are gone here
  bool is_source = false;            // the target there is the directory here: nothing was done
};

// How far a host is.
struct CopyState {
  const std::string& name;
  uint64_t sent = 0, total = 0;  // bytes; 0 of 0: what is missing there is not known yet
  bool over = false, failed = false;
};

// Of a push.
struct PushTarget {
  std::string path;  // absolute; empty: this is no push
  uint32_t mode = 0;
  bool remove = false, among_others = false;  // as in wire::CopyBegin
};

struct CopyRequest {
  std::string name;                                                  // of the copy
  std::string root;                                                  // the folder here
  const sync::Manifest* manifest = nullptr;                          // of it; null: the copy is released. Outlives the object
  std::function<void(const std::vector<CopyState>&)> progress = {};  // about once a second
  size_t first_spare = SIZE_MAX;                                     // from this position on the hosts wait
  PushTarget target = {};
  const sync::Aside* aside = nullptr;  // contents of the manifest that are not those of files in root; outlives the object
  std::string last_list = {};          // where the list of the last copy of root is kept (sync/last_list.h); empty: nowhere
};

class CopyToHosts {
 public:
  // transports: per target. All must outlive the object.
  CopyToHosts(os::Loop& loop, const std::vector<hosts::Target>& targets, const std::vector<const hosts::Transport*>& transports,
              hosts::Payload& payload, hosts::OpenerOptions options, CopyRequest request);
  // Runs the loop until every host has its copy or cannot have it. After a signal, hosts that have none yet have the error kInterrupted.
  base::Result<std::vector<CopiedHost>> run();

 private:
  struct Host {
    CopiedHost copied;
    bool said_hello = false, asked = false, over = false, finished = false;
    bool whole_list = true;  // it is sent the manifest, not what changed of it
    size_t list_sent = 0;    // bytes of it
    uint64_t total = 0;
    std::string address;  // at which ssh has reached it
    std::shared_ptr<ContentStream> contents;
    bool held = false;                 // until it is known whether it will be in a chain
    std::shared_ptr<CopyChain> chain;  // shared by its hosts
    size_t block = 0;                  // of contents, to be sent next
    ContentStream::Place place;        // where it begins
    os::Mono began, heard;
    size_t pending = 0;  // at the last look
  };
  void on_frame(size_t h, const wire::Frame& frame);
  base::Status take_wanted(size_t h, wire::CopyWanted wanted);
  bool on_chain_frame(size_t h, const wire::Frame& frame);
  base::Status take_taken(size_t h, const wire::Frame& frame);
  ContentStream::Place place_at(const Wanted& wanted, uint64_t byte) const;
  void hold(size_t h);
  void make_chains_if_all_asked();
  static bool lack_the_same(const Host& a, const Host& b);
  void make_chains();
  void make_chain(const std::vector<size_t>& members);
  void pump_all();
  void pump_two(size_t head, size_t h);
  void finish_those_over();
  void pump(size_t h);
  std::shared_ptr<ContentStream> contents_for(Wanted wanted);
  std::shared_ptr<ContentStream> stream_from(Wanted wanted, ContentStream::Place place);
  bool next_piece(size_t h, std::string& frames);
  bool next_block(size_t h, std::string& frames);
  void fail(size_t h, base::Error error);
  void settle(size_t h);
  bool all_asked() const;  // or are over
  void tick();

  os::Loop& loop_;
  CopyRequest request_;
  std::string list_;  // the manifest, encoded
  sync::ListChanges changes_;
  sync::SourceMark mark_;
  Packers packers_;
  std::vector<Host> hosts_;
  os::TimerId gathering_ = 0;
  hosts::Opener opener_;
};

}  // namespace phalanx::job
