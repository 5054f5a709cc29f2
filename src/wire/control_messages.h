// What is spoken on the control socket of a run (docs/formats/control-socket.md): `phalanx ps`, `attach` and `stop` ask, the launcher
// answers. Frames as everywhere (wire/frame.h); a client's are at most kMaxAskBytes. Besides these the launcher sends Output and
// Progress (wire/messages.h) to who follows.
//
// And the sweep: `phalanx stop` logs in to a host again and has the agent look for what a run has left there.
#pragma once

#include "wire/messages.h"

namespace phalanx::wire {

inline constexpr size_t kMaxAskBytes = 64;
inline constexpr size_t kMaxSwept = 256;             // processes named in one answer
inline constexpr size_t kMostSweptBytes = 16 << 10;  // of a process's command

// --- client to launcher ----------------------------------------------------------------------------------------------
enum class Wish : uint8_t {
  kStatus = 1,  // one RunStatus
  kFollow = 2,  // RunStatus, then everything a person at the launcher's terminal would see, until RunEnded
  kStop = 3,    // what Ctrl-C does; then as kFollow, without output and progress
  kLook = 4,    // RunStatus, then Looked as soon as all hosts have answered
};
struct Ask {
  static constexpr FrameType kType = FrameType::kAsk;
  Wish wish = Wish::kStatus;
  int64_t grace_ms = -1;  // kStop: instead of the run's own grace; -1: that one. At most a day
  bool kill = false;      // kStop: no grace, what a second Ctrl-C does
};

// --- launcher to client ----------------------------------------------------------------------------------------------
struct RunStatus {
  static constexpr FrameType kType = FrameType::kRunStatus;
  std::string json;  // docs/formats/control-socket.md
};
struct Talk {
  static constexpr FrameType kType = FrameType::kTalk;
  std::string text;  // a whole sentence, in the launcher's language
};
struct Dropped {
  static constexpr FrameType kType = FrameType::kDropped;
  uint64_t bytes = 0;
};  // output this client was too slow for; it is in the logs
struct RunEnded {
  static constexpr FrameType kType = FrameType::kRunEnded;
  uint32_t exit_code = 0;
};  // run.json has the verdict by now

// What every rank does now.
struct Looked {
  static constexpr FrameType kType = FrameType::kLooked;
  std::string json;  // docs/formats/control-socket.md
};

// --- launcher to agent -----------------------------------------------------------------------------------------------
// Waits until no process of the run is left, but not longer than patience; then kills what is left. Answered with Swept.
struct Sweep {
  static constexpr FrameType kType = FrameType::kSweep;
  std::string run_id;
  uint32_t patience_ms = 0;
};
struct SweptProcess {
  uint32_t pid = 0;
  std::string command;  // secrets hidden (machine/ranks/process_table.h)
  bool gone = false;    // ended, by itself within the patience or by us
};
struct SweptUnseen {
  uint32_t pid = 0;  // 0: no process, or none in particular
  std::string text;  // what could not be looked at, and the reason
};
struct Swept {
  static constexpr FrameType kType = FrameType::kSwept;
  std::vector<SweptProcess> found;  // that had to be killed, at most kMaxSwept
  uint32_t waited_for = 0;          // that ended by themselves meanwhile
  std::vector<SweptUnseen> unseen;  // where there is any, nothing is proved
};

}  // namespace phalanx::wire
