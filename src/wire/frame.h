// Frames: what the launcher and an agent speak over the agent's stdin and stdout (docs/formats/frames.md).
//
//   stream := kStreamMagic frame*          each direction
//   frame  := u32 payload length, u8 type, payload        little-endian, payload <= kMaxFrameBytes
//
// The magic carries the version of the whole protocol: two builds that differ in it refuse each other. Launcher and
// agent are the same binary (the launcher deploys itself), so there is no negotiation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::wire {

// NUL first: no login banner or shell start-up file prints it, so a reader can skip noise in front of it.
inline constexpr std::string_view kStreamMagic{"\0PHALANX-1\n", 11};
inline constexpr size_t kFrameHeaderBytes = 5;
inline constexpr size_t kMaxFrameBytes = 16 << 20;
inline constexpr size_t kMaxNoiseBytes = 64 << 10;  // accepted in front of the magic

enum class FrameType : uint8_t {
  // launcher to agent
  kPrepare = 1,
  kOpenStore = 2,
  kReach = 3,
  kStart = 4,
  kSignal = 5,
  kPing = 6,
  kFinish = 7,
  kProbe = 8,
  kListen = 9,
  kDial = 10,
  kSample = 20,
  kDig = 21,
  kSweep = 40,
  kCopyBegin = 50,
  kCopyBytes = 51,
  kCopyRelease = 52,
  kCopyPacked = 53,
  kCopyListen = 54,
  kCopyPassOn = 55,
  // agent to launcher
  kHello = 64,
  kPrepared = 65,
  kStoreOpened = 66,
  kReached = 67,
  kStarted = 68,
  kOutput = 69,
  kProgress = 70,
  kExited = 71,
  kConnected = 72,
  kPong = 73,
  kFinished = 74,
  kTrouble = 75,
  kProbed = 76,
  kListening = 77,
  kDialed = 78,
  kPulse = 90,
  kSampled = 91,
  kDug = 92,
  kSwept = 104,
  kCopyWanted = 114,
  kCopyProgress = 115,
  kCopyDone = 116,
  kCopyListening = 117,
  kCopyPassing = 118,
  kCopyTaken = 119,
  // on a run's control socket (control_messages.h): client to launcher, launcher to client
  kAsk = 160,
  kRunStatus = 176,
  kTalk = 177,
  kDropped = 178,
  kRunEnded = 179,
  kLooked = 180,
};

struct Frame {
  FrameType type{};
  std::string_view payload;  // valid until the next call on the reader
};

// Appends one frame to `out`. Error (kInternal): the payload is larger than kMaxFrameBytes; `out` is left as it was.
base::Status put_frame(std::string& out, FrameType type, std::string_view payload);

// Incremental reader of one direction. feed() bytes, then next() until it is empty.
class FrameReader {
 public:
  // most_bytes: of one payload; less than the protocol's own limit where the other side has no reason to send more.
  explicit FrameReader(size_t most_bytes = kMaxFrameBytes) : most_bytes_(most_bytes) {}
  void feed(std::string_view bytes);
  // The next whole frame; empty when more bytes are needed. Error (kInternal): the stream cannot be ours; it stays broken.
  base::Result<std::optional<Frame>> next();
  bool started() const { return started_; }            // the magic has been seen
  const std::string& noise() const { return noise_; }  // what came before it
  size_t buffered() const { return buffer_.size() - position_; }

 private:
  base::Status find_magic();
  std::string buffer_;
  std::string noise_;
  size_t position_ = 0;
  size_t most_bytes_;
  bool started_ = false;
  bool broken_ = false;
};

}  // namespace phalanx::wire
