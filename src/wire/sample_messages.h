// The messages about ranks that run (docs/formats/frames.md): how busy they are, and, when the run stands still, what they wait in.
// They encode and decode as those of messages.h.
#pragma once

#include "wire/messages.h"

namespace phalanx::wire {

// "1" among the job's variables asks for the Python hook (agent/ranks/python_hook.h); ranks do not get it.
inline constexpr const char* kPythonHookVariable = "PHALANX_PYTHON_HOOK";

// In a Sample's id: a person has asked (phalanx stacks), beside the questions of the supervisor, which it does not disturb.
inline constexpr uint32_t kPersonAsks = 1u << 30;
inline constexpr uint32_t kMostLooks = 256;

// --- launcher to agent ---------------------------------------------------------------------------------------------
// Look at all ranks of the host (machine/ranks/sample.h). Answered with one Sampled, at the latest a little after the deadline.
struct Sample {
  static constexpr FrameType kType = FrameType::kSample;
  uint32_t id = 0;      // comes back in the answer
  bool frames = false;  // read stacks too
  bool gpus = false;    // ask the driver too
  uint32_t deadline_ms = 0;
  uint32_t looks = 0;  // more than 0: only where the first thread of each rank is, so many times until the deadline
};
// Ask these ranks where they are, by the tools the host has: the Python hook, py-spy, gdb; and collect what PyTorch has dumped.
// Answered with one Dug.
struct Dig {
  static constexpr FrameType kType = FrameType::kDig;
  uint32_t id = 0;
  std::vector<uint32_t> ranks;
  bool debugger = false;  // gdb may be used: it stops a process for a moment
  uint32_t deadline_ms = 0;
};

// --- agent to launcher ---------------------------------------------------------------------------------------------
// Every few seconds while ranks run: what they have used since the last one.
struct RankPulse {
  uint32_t rank = 0;
  uint32_t cpu_ms = 0;        // of the rank and all it has started, in the window
  uint32_t throttled_ms = 0;  // by the CPU limit of its cgroup, in the window
  uint32_t major_faults = 0;  // in the window
  uint8_t state = 0;          // of its first process, as in proc(5): 'S'
  uint64_t rss_kb = 0;
  uint32_t delayed_ms = 0;  // its first thread could have run, but other threads had the CPUs, in the window
};
// What this host has sent to one address over TCP in the window, by whichever program.
struct PeerPulse {
  std::string address;
  uint32_t sent = 0, resent = 0;       // segments with data; those that had been lost
  uint32_t looks = 0, recovering = 0;  // times that the connections were looked at; … and one was waiting for what had been lost
};
struct Pulse {
  static constexpr FrameType kType = FrameType::kPulse;
  int64_t at_ns = 0;
  uint32_t window_ms = 0;
  std::vector<RankPulse> ranks;
  std::vector<PeerPulse> peers;  // those that something was sent to
  uint32_t stolen_permille = 0;  // of the CPUs' time, by the hypervisor
};
struct Sampled {
  static constexpr FrameType kType = FrameType::kSampled;
  uint32_t id = 0;
  Outcome outcome;
  std::string json;  // machine::HostSample
};
enum class PieceKind : uint8_t {
  kHookStack = 1,  // of the Python hook
  kToolStack,      // of py-spy or gdb
  kFlightRecord,   // PyTorch's flight recorder
  kRasReport,      // NCCL's service: of the job, not of a rank
};
struct Piece {
  uint32_t rank = 0;
  PieceKind kind = PieceKind::kHookStack;
  std::string bytes;
};
struct Dug {
  static constexpr FrameType kType = FrameType::kDug;
  uint32_t id = 0;
  std::vector<Piece> pieces;  // together at most 12 MiB
};

}  // namespace phalanx::wire
