// The survey of the hosts before a start: a pure machine, and what it has found. For check, plan, fit, bench and run alike.
//
//   probing → listening → dialing → surveyed
// probing: every host is asked for its facts. listening, dialing: they connect to each other, over one network after the other until one
// holds. surveyed: what could be found out is; the supervisor takes the choices and the examination, and stage becomes kDone. measuring:
// the bursts of a run, while its program starts.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "doctor/examine.h"
#include "doctor/situation.h"
#include "hosts/mesh.h"
#include "job/choose/choose.h"
#include "os/clock.h"

namespace phalanx::job {

inline constexpr os::milliseconds kAnswersPause{500};  // a stage does not end while the last answer is younger
inline constexpr os::milliseconds kProbeGrace{700};    // beyond the probe's deadline: a host that has not answered by then hangs
// A host that answers pings and not the question is busy, and is waited for so long after the last answer of any host.
inline constexpr os::milliseconds kTalks{2000};  // since its last pong
inline constexpr os::milliseconds kBusyPatience{15'000};
inline constexpr os::milliseconds kGpuMemoryPatience{10'000};  // after a restart began: for a driver to take back memory of dead ranks
inline constexpr os::milliseconds kListenPatience{1500};
// Of one dial: long enough for a second SYN (after 1 s), so that one lost packet is no closed port.
inline constexpr os::milliseconds kDialTimeout{2200};
inline constexpr os::milliseconds kDialPatience{11'000};  // for a whole round without bursts: slow links are waited for
inline constexpr uint32_t kMeshPayload = 256 << 10;       // bytes; larger than any MTU and than a token bucket
inline constexpr uint32_t kPathPayload = 68 << 10;        // bytes, before a start: larger than any MTU (IPoIB has 65,520)
inline constexpr uint32_t kMeshEchoes = 8;                // the shortest of them is the round trip
inline constexpr os::milliseconds kAllBursts{400};        // where the user has not said how long: all rounds together
inline constexpr os::milliseconds kMeasureAfter{200};     // after the start of the ranks: a program that ends at once is not disturbed
inline constexpr os::milliseconds kShortestBurst{15}, kLongestBurst{60};
inline constexpr size_t kMostNetworks = 3;  // tried, where one does not hold

struct Survey {
  enum class Stage { kNone, kProbing, kListening, kDialing, kSurveyed, kDone, kMeasuring };
  Stage stage = Stage::kNone;
  os::Mono begun_at;                       // of the attempt it is made for
  std::optional<os::Mono> deadline;        // of the stage
  os::Mono asked_at, last_answer;          // in this stage
  bool busy_told = false;                  // that busy hosts are waited for
  std::vector<bool> answered;              // per host, in this stage: has answered, or is given up
  std::vector<std::vector<size_t>> peers;  // per host: whose names and routes it looks at
  bool memory_told = false;                // that GPU memory of dead ranks is waited for
  bool firewall_asked = false;             // the probes read the rules of the packet filters

  // The mesh test.
  std::vector<Network> networks;             // candidates, best first
  size_t network = 0;                        // the one being tried
  std::vector<std::vector<uint32_t>> ports;  // per host: its own, and on rank 0's host MASTER_PORT; 0: none
  std::vector<std::vector<hosts::Pair>> rounds;
  size_t round = 0;                                                // 0: all pairs at once, does it hold? r: the bursts of rounds[r - 1]
  hosts::Mesh mesh;                                                // of the network being tried
  std::map<std::tuple<size_t, size_t, bool>, size_t> link_places;  // in `mesh`: from, to, at the port of MASTER_PORT
  std::optional<size_t> best;                                      // network that failed least so far
  hosts::Mesh best_mesh;
  bool mesh_over = false;  // it was made, or cannot be made

  os::Mono examined_at;
  bool examined = false;  // the checks of this run have come to their end, and `examination` is their result

  doctor::Situation situation;      // hosts: from the beginning of the checks; the rest as it is found out
  doctor::Examination examination;  // when kDone
  std::optional<Choices> choices;   // when kDone
};

}  // namespace phalanx::job
