// The messages of copying a folder to a host (docs/formats/frames.md; sync/receive.h is the far side). They encode and decode as those of
// messages.h. One copy at a time over one connection, which starts no ranks.
//
//   CopyBegin, CopyBytes of the manifest…   →
//     (or of its changes                    →
//                                           ←  CopyWanted, if they do not fit: of the manifest
//      CopyBytes of the manifest…           →)
//                                           ←  CopyWanted
//   CopyBytes, CopyPacked of the contents…  →
//                                           ←  CopyProgress…, CopyDone
//
// Hosts that lack the same can pass the contents on, each to the next (job/copy/copy_chain.h). Between CopyWanted and the contents:
//
//   CopyListen to the one behind            →
//                                           ←  CopyListening
//   CopyPassOn to the one before            →
//                                           ←  CopyPassing
//
// CopyBytes and CopyPacked then come to the one behind from the one before (agent/copy_link.h), and both send CopyTaken now and then.
#pragma once

#include "base/packing.h"
#include "wire/messages.h"

namespace phalanx::wire {

inline constexpr size_t kMostWanted = 2'000'000;
inline constexpr uint64_t kMostCopiedBytes = 1ULL << 44;  // of one directory

// --- launcher to agent ---------------------------------------------------------------------------------------------
struct CopyBegin {
  static constexpr FrameType kType = FrameType::kCopyBegin;
  std::string name;             // of the copy
  uint64_t manifest_bytes = 0;  // that follow in CopyBytes, unless:
  bool waits = false;           // the host is a spare: nothing on it stamps the copy until it takes a place
  std::string target;           // not empty: no copy is made, the directory is pushed to this path (sync/place.h)
  uint32_t mode = 0;            // of the target, if it is made
  bool remove = false;          // from the target: what earlier pushes have put there and the list no longer has
  bool among_others = false;    // the target may hold files that no push has put there
  uint64_t changes_bytes = 0;   // not 0: so many follow instead, what makes the manifest of that of the last copy (sync/manifest.h)
  std::string digest;           // then: the SHA-256 of the manifest, 32 bytes
  std::string source_mark;      // a file in the directory that is pushed (sync/source_mark.h); empty: there is none
};
struct CopyBytes {
  static constexpr FrameType kType = FrameType::kCopyBytes;
  std::string_view data;  // valid as long as the frame
};
// The same of contents, where they are shorter so.
struct CopyPacked {
  static constexpr FrameType kType = FrameType::kCopyPacked;
  base::Packing packing = base::Packing::kLz4;
  uint32_t size = 0;      // of the contents
  std::string_view data;  // a block (base/packing.h); valid as long as the frame
};
// The run of this copy is over: keep it only if something in it is not as it was made. Answered with CopyDone.
struct CopyRelease {
  static constexpr FrameType kType = FrameType::kCopyRelease;
  std::string name;
};

// Let the host before you in a chain send you the contents.
struct CopyListen {
  static constexpr FrameType kType = FrameType::kCopyListen;
  std::string address;  // of this host; empty: no more, the contents come from the launcher
  std::string key;      // kKeyBytes; of this link alone
};
// Pass the contents on to the host behind you.
struct CopyPassOn {
  static constexpr FrameType kType = FrameType::kCopyPassOn;
  std::string address;  // empty: no more
  uint32_t port = 0;
  std::string key;
};

// --- agent to launcher ---------------------------------------------------------------------------------------------
struct CopyWanted {
  static constexpr FrameType kType = FrameType::kCopyWanted;
  std::vector<uint32_t> entries;  // positions in the manifest
  uint32_t partial = 0;           // one of them, if `from` is not 0:
  uint64_t from = 0;              // its bytes before this one are there
  bool whole_list = false;        // the last copy here was of another list: nothing is known before the manifest itself comes
};
struct CopyProgress {
  static constexpr FrameType kType = FrameType::kCopyProgress;
  uint64_t made = 0;  // entries of the manifest; 0 while another copy is waited for
};
// Answers CopyListen with an address.
struct CopyListening {
  static constexpr FrameType kType = FrameType::kCopyListening;
  Outcome outcome;
  uint32_t port = 0;
};
// Answers CopyPassOn with an address: whether the other host is there and has proved the key.
struct CopyPassing {
  static constexpr FrameType kType = FrameType::kCopyPassing;
  Outcome outcome;
};
struct CopyTaken {
  static constexpr FrameType kType = FrameType::kCopyTaken;
  uint64_t bytes = 0;  // of contents that are here, whoever has sent them
  bool lost = false;   // the host before no longer sends: the next come from the launcher
};
// The end, also of what failed.
struct CopyDone {
  static constexpr FrameType kType = FrameType::kCopyDone;
  Outcome outcome;
  std::string path;                  // of the copy
  bool kept = true;                  // after CopyRelease: somebody wrote into it, and it stays
  uint64_t removed = 0, stayed = 0;  // after a push: files that are gone at the source
  bool is_source = false;            // the target is the directory that is pushed: nothing was done
};

}  // namespace phalanx::wire
