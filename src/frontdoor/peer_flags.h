// The options of other launchers, one table for each: what becomes of every one. The readers, the guide (docs/guides/front-doors.md, held
// against these rows by a test) and the tests themselves follow them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "words/message.h"

namespace phalanx::frontdoor {

enum class Peer { kTorchrun, kTorchLaunch, kAccelerate, kDeepSpeed, kLlamaFactory, kPython };

enum class Answer {
  kHonoured,     // `becomes` says into what
  kMeaningless,  // there is nothing to do for it here; said once, with the reason
  kRejected,     // an error, with what to do instead
};

struct PeerFlag {
  std::string_view names;    // "nproc-per-node", "module|m", '-' for '_'; one letter: an option with one dash
  bool takes_value = false;  // else a switch
  Answer answer = Answer::kHonoured;
  std::string_view becomes = {};  // of kHonoured: options of phalanx run, or variables
  words::Text why = {};           // of the others
  std::string_view name() const { return names.substr(0, names.find('|')); }
};

std::span<const PeerFlag> torchrun_flags();
std::span<const PeerFlag> launch_flags();  // what torch.distributed.launch has beyond torchrun
std::span<const PeerFlag> accelerate_flags();
std::span<const PeerFlag> deepspeed_flags();
// Variables that llamafactory-cli train reads; names as they are.
std::span<const PeerFlag> llamafactory_variables();

// Keys of accelerate's configuration file that are no options; names as they are.
std::span<const PeerFlag> accelerate_keys();
// Variables that the launcher reads beside its options; names as they are. Of LLaMA-Factory: llamafactory_variables().
std::span<const PeerFlag> variables_of(Peer peer);

// All of a peer's options, in the order of its guide.
std::vector<PeerFlag> flags_of(Peer peer);

struct GivenFlag {
  const PeerFlag* flag;
  std::string typed;  // "--nproc_per_node", "PET_NNODES"
  std::string value;
  bool known = true;  // false: the value is a shell variable that nobody knows here ("${MASTER_ADDR}")
};

struct ReadFlags {
  std::vector<GivenFlag> flags;   // in the order given; of an option given twice, the last
  std::vector<std::string> rest;  // the script and its arguments

  const GivenFlag* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
};

// As Python's argparse reads `words`: "--flag value", "--flag=value", "-fvalue", '_' and '-' alike, with `abbreviations` also the unique
// beginning of a name; the first word that is no option ends them. Errors: kUsage, with the nearest name.
base::Result<ReadFlags> read_flags(std::string_view peer, std::span<const PeerFlag> table, bool abbreviations,
                                   std::span<const std::string> words);

}  // namespace phalanx::frontdoor
