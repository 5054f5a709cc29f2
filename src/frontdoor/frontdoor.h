// The front doors: a command line of torchrun, torch.distributed.launch, accelerate, DeepSpeed, LLaMA-Factory, or of a plain Python
// program, becomes a job of ours. Pure: the world is seen through Surroundings.
//
// Sources: torch/distributed/run.py and launch.py, accelerate/commands/launch.py and utils/launch.py (16cb6eb8),
// deepspeed/launcher/runner.py and launch.py (edaa72212), llamafactory/launcher.py (ff6d4d12e).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "frontdoor/peer_flags.h"
#include "frontdoor/surroundings.h"
#include "frontdoor/translation.h"

namespace phalanx::frontdoor {

struct Line {
  std::vector<std::pair<std::string, std::string>> prefix;  // VAR=value in front of the command
  std::vector<std::string> words;                           // the command, with its launcher
};

// Which door a command goes through; none: it is no command of a launcher we know. "torchrun", "/opt/env/bin/torchrun", "python3 -m
// torch.distributed.run", "accelerate", "accelerate-launch", "deepspeed", "llamafactory-cli", "lmf", "python".
std::optional<Peer> peer_of(std::span<const std::string> words);

// Moves VAR=value words from the front of the words to the prefix.
void take_prefix(Line& line);

// Errors: kUsage and kConfig, in the words of the peer's own options and files.
base::Result<Translation> translate(const Line& line, const Surroundings& surroundings);

}  // namespace phalanx::frontdoor
