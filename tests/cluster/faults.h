// Faults of a training that runs, each with the verdict that is right: what the fault tests hold `phalanx run` against, and the bench puts
// beside torchrun.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "cluster.h"

namespace testbed {

struct InjectedFault {
  std::string name;    // of scripts/trainer.py's FAULT, unless `strike` is given: then it is done from outside, once both ranks train
  std::string code;    // of the verdict
  int rank = 1;        // of the verdict; -1: it names the host
  std::string says{};  // in the evidence or the error; may be empty
  std::function<base::Status(Cluster&)> strike{};
  milliseconds most{3000};  // from the fault to the prompt; an interpreter takes a second of it to end
  bool host_is_gone = false;
};

void PrintTo(const InjectedFault& fault, std::ostream* stream);  // for gtest's messages
// On two hosts, h1 with rank 0 and h2 with rank 1, which is the one that goes wrong.
std::vector<InjectedFault> end_faults();

}  // namespace testbed
