// Why a run stands still: the samples of all ranks, taken twice, their stacks, their flight recorders, laid beside each other. Pure.
//
// The rules, first that holds: a rank that ended while others wait; one that is stopped, traced or frozen; one that waits for a disk; one
// that swaps; a connection between two ranks that does not get through; then what the ranks have asked of each other (records.h): by their
// flight recorders, with the samples of those that wrote none, by NCCL's RAS, by the samples alone; the proof that all wait for each other
// (diagnosis/hang/deadlock.h). What a rank waits in is read from the stacks of its threads (machine/ranks/stack_scan.h), where they may be
// read, and from wchan where not. Where nothing is certain the verdict says which evidence is missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "diagnosis/hang/hang_view.h"
#include "diagnosis/hang/ras.h"
#include "diagnosis/hang/records.h"
#include "doctor/finding.h"

namespace phalanx::diagnosis {

struct RankView {
  int rank = 0;
  size_t host = 0;
  bool exited = false;
  int exit_code = 0;
  double exited_ago_s = 0;
  std::optional<int64_t> step;                     // the last it told of
  std::optional<machine::RankSample> first, then;  // none: its host did not answer
  std::string stack;                               // text of the Python hook, py-spy or gdb; may be empty
};

struct HangInput {
  std::vector<RankView> ranks;               // by rank
  std::vector<std::string> hosts;            // names
  std::map<size_t, std::string> unanswered;  // hosts without samples, and why
  double silent_s = 0;                       // how long nothing has moved
  double between_s = 1;                      // from the first sample to the second
  bool early = false;                        // a look before the threshold: a connection must have failed for longer
  bool devices = false;                      // some host has GPUs: what they do is not seen from outside
  std::span<const RankRecord> records;       // of the flight recorders that could be read
  const RasReport* ras = nullptr;            // of NCCL's RAS service, where it answered
};

Diagnosis judge_hang(const HangInput& input);

// Ranks worth asking for their stacks (wire::Dig): those the verdict names and two of the others; all, where it names none.
std::vector<int> ranks_to_ask(const HangInput& input, const Diagnosis& verdict);

}  // namespace phalanx::diagnosis
