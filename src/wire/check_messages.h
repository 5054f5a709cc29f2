// The messages of the checks before a start (docs/formats/frames.md): the probe of a machine and the mesh test between machines.
// They encode and decode as those of messages.h.
#pragma once

#include "wire/link_outcome.h"
#include "wire/messages.h"

namespace phalanx::wire {

// --- launcher to agent ---------------------------------------------------------------------------------------------
// Look at the machine (machine/probe.h), with the environment a rank of this job would get. Answered with Probed at the latest a little
// after the deadline, whatever hangs.
struct ProbePeer {
  std::string name;
  std::vector<std::string> addresses;
};
struct Probe {
  static constexpr FrameType kType = FrameType::kProbe;
  JobSpec job;
  std::vector<ProbePeer> peers;
  std::vector<uint32_t> ports;
  std::vector<std::string> names;
  std::vector<std::string> paths;
  uint32_t deadline_ms = 0;
  bool firewall = false;  // read the rules of the packet filter too, which takes a program of the host
};
// The mesh test (agent/mesh/listener.h). Listen replaces all listeners there are; without places it only closes them.
struct Place {
  std::string address;
  uint32_t port = 0;  // 0: the kernel chooses
};
struct Listen {
  static constexpr FrameType kType = FrameType::kListen;
  std::string key;  // wire/challenge.h: for the mesh
  std::vector<Place> places;
};
struct DialTarget {
  uint32_t to = 0;  // position in the host list
  std::string address;
  uint32_t port = 0;
  bool master_port = false;
};
// Dials all targets side by side; answered with one Dialed when the last is decided.
struct Dial {
  static constexpr FrameType kType = FrameType::kDial;
  uint32_t round = 0;
  std::string key;             // wire/challenge.h: for the mesh
  uint32_t echoes = 0;         // small ones, whose shortest round trip counts; 0: none
  uint32_t payload_bytes = 0;  // sent and echoed; 0: none
  uint32_t burst_ms = 0;       // sent as fast as it goes; 0: none
  uint32_t timeout_ms = 0;     // of the connect, and of any later silence
  std::vector<DialTarget> targets;
};

// --- agent to launcher ---------------------------------------------------------------------------------------------
// The answer to Probe: machine::Facts as JSON (machine/facts.h).
struct Probed {
  static constexpr FrameType kType = FrameType::kProbed;
  Outcome outcome;
  std::string json;
};
// The answer to Listen: one for each place asked for.
struct ListenedPlace {
  Outcome outcome;
  uint32_t port = 0;
};
struct Listening {
  static constexpr FrameType kType = FrameType::kListening;
  std::vector<ListenedPlace> places;
};
// What became of one dial; fields as in hosts/mesh.h.
struct DialedLink {
  uint32_t to = 0;
  bool master_port = false;
  LinkOutcome outcome = LinkOutcome::kNone;
  uint32_t error_number = 0;
  int64_t connect_ns = 0;
  int64_t round_trip_ns = 0;
  int64_t bytes_per_second = 0;
  int64_t segments = 0;
  int64_t retransmits = 0;
  std::string local_address;
};
struct Dialed {
  static constexpr FrameType kType = FrameType::kDialed;
  uint32_t round = 0;
  std::vector<DialedLink> links;
};

}  // namespace phalanx::wire
