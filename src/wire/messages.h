// The messages between launcher and agent, one struct per frame type. Each has encode() → a whole frame appended to a
// buffer, and decode() → the struct or an Error (kInternal: truncated, oversized or with bytes left over).
// The messages of the checks before a start are in check_messages.h.
// Times are monotonic nanoseconds of the host that sends them; the launcher converts (clock_offset_ns in job/turn.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "wire/frame.h"
#include "wire/job_spec.h"

namespace phalanx::wire {

// A failure on a host, as it travels.
struct Outcome {
  bool ok = true;
  base::Error error;  // when not ok
};

// --- agent to launcher ---------------------------------------------------------------------------------------------
struct Address {
  std::string interface;
  std::string address;
};

struct Hello {
  static constexpr FrameType kType = FrameType::kHello;
  std::string build;  // content hash of the agent's binary
  std::string hostname;
  std::string user;
  uint32_t pid = 0;
  uint32_t cpus = 0;               // this process may run on
  uint32_t gpus = 0;               // visible to this process
  std::vector<Address> addresses;  // up, not loopback
  std::string ssh_server;          // the address of this host that the ssh connection came in on; empty when local
  std::string ssh_client;          // the address it came from
  int64_t now_ns = 0;
  int64_t wall_ns = 0;  // CLOCK_REALTIME at the same moment
  // Changes whenever what the checks rest on may have changed: the boot, the namespaces, the interfaces with their addresses and states,
  // this login's own settings for NCCL and its kind. Not a secret, and no secret is in it.
  std::string fingerprint;
};

struct Prepared {
  static constexpr FrameType kType = FrameType::kPrepared;
  Outcome outcome;
  std::string program;
};
struct StoreOpened {
  static constexpr FrameType kType = FrameType::kStoreOpened;
  Outcome outcome;
  uint32_t port = 0, holder = 0;  // holder: when not ok, the process that listens on the port that was asked for, if seen
};
struct Reached {
  static constexpr FrameType kType = FrameType::kReached;
  Outcome outcome;
  std::string interface;
};
struct Started {
  static constexpr FrameType kType = FrameType::kStarted;
  Outcome outcome;
  uint32_t rank = 0;
  uint32_t pid = 0;
};

enum class Stream : uint8_t { kStdout = 1, kStderr = 2 };
enum class OutputKind : uint8_t { kLines = 0, kProgress = 1 };
struct Output {
  static constexpr FrameType kType = FrameType::kOutput;
  uint32_t rank = 0;
  Stream stream = Stream::kStdout;
  OutputKind kind = OutputKind::kLines;
  int64_t at_ns = 0;
  std::string_view data;  // kLines: whole lines, each with its '\n'. kProgress: one bar state. Valid as long as the frame
};
struct Progress {
  static constexpr FrameType kType = FrameType::kProgress;
  uint32_t rank = 0;
  int64_t at_ns = 0;
  std::string line;
};
// What the machine says of the end of a rank: the kernel's log, and the memory limit of the rank's cgroup.
inline constexpr size_t kMostSigns = 256;
struct ExitSign {
  enum class Kind : uint8_t {
    kCgroupKill = 1,    // the cgroup has counted a process killed for memory
    kKernelCgroupKill,  // the kernel's log: killed for the memory limit of a cgroup
    kKernelKill,        // the kernel's log: killed because the machine had no memory left
    kGpuFailure,        // an Xid
    kOther,
  } kind = Kind::kOther;
  std::string text;  // one line
};
struct Exited {
  static constexpr FrameType kType = FrameType::kExited;
  uint32_t rank = 0;
  uint32_t status = 0;  // as from waitpid
  int64_t at_ns = 0;
  uint8_t stopped_by_us = 0;    // the last signal we had sent it, 0 if none
  std::string error_file;       // what the program left in TORCHELASTIC_ERROR_FILE, at most 64 KiB
  std::string last_words;       // the last lines of its stderr, at most 8 KiB; of a rank that we stopped, those from before that
  std::vector<ExitSign> signs;  // may be empty (agent/ranks/exit_evidence.h)
};
struct Connected {
  static constexpr FrameType kType = FrameType::kConnected;
  uint32_t rank = 0;
};  // it has reached the store
struct Pong {
  static constexpr FrameType kType = FrameType::kPong;
  uint64_t nonce = 0;
  int64_t now_ns = 0;
};
struct Finished {
  static constexpr FrameType kType = FrameType::kFinished;
  uint32_t killed = 0;
  uint32_t left = 0;
};
struct Trouble {
  static constexpr FrameType kType = FrameType::kTrouble;
  std::string text;
};  // worth telling, not fatal

// --- launcher to agent ---------------------------------------------------------------------------------------------
// Checks the host for this job. Everything later (Start) uses what is given here.
struct Prepare {
  static constexpr FrameType kType = FrameType::kPrepare;
  std::string run_id;
  std::string key;        // wire/challenge.h: for the store, and for reaching it
  uint32_t lease_ms = 0;  // silence of the launcher after which the agent stops everything
  JobSpec job;
  std::string boot_id;  // of the launcher's machine; may be empty
};
struct OpenStore {
  static constexpr FrameType kType = FrameType::kOpenStore;
  std::string address;
  uint32_t port = 0;
  bool serve = true;
};
struct Reach {
  static constexpr FrameType kType = FrameType::kReach;
  std::string address;
  uint32_t port = 0;
  uint32_t timeout_ms = 0;
};
struct RankSpec {
  uint32_t rank = 0;
  uint32_t local_rank = 0;
  Variables set;
  std::string cpus = {};  // a cpulist ("0-15,64-79") the rank is bound to; empty: as the agent
};
// defaults: for every rank here, where neither the host nor the user has set the name.
struct Start {
  static constexpr FrameType kType = FrameType::kStart;
  std::string store_address;
  uint32_t store_port = 0;
  Variables defaults;
  std::vector<RankSpec> ranks;
};
struct Signal {
  static constexpr FrameType kType = FrameType::kSignal;
  uint8_t signal = 0;
};  // to every rank's process group; SIGKILL: to everything
struct Ping {
  static constexpr FrameType kType = FrameType::kPing;
  uint64_t nonce = 0;
  int64_t sent_ns = 0;  // on the launcher's clock: the lease counts from here, whenever the agent gets to read it
};
struct Finish {
  static constexpr FrameType kType = FrameType::kFinish;
};  // kill what is left, answer Finished, exit

// For every message here and in the headers of the same kind. encode: kInternal if the frame would exceed kMaxFrameBytes; `out` is left as
// it was. decode: within bounds.h.
template <typename Message>
base::Status encode(std::string& out, const Message&);
template <typename Message>
base::Result<Message> decode(std::string_view payload);

}  // namespace phalanx::wire
