// The choices of a plan as a person reads them: GPUs, address, variables and CPUs, each with its reason, hosts that agree folded
// into one line; then what is to be said of the user's own settings, and what cannot be had.
#pragma once

#include <string>

#include "base/language.h"
#include "doctor/situation.h"
#include "job/choose/choose.h"

namespace phalanx::view {

std::string choices_text(const doctor::Situation& situation, const job::Choices& choices, base::Language language);

// "GPU 0 (NVIDIA A100-SXM4-80GB, GPU-5f1c…) CPUs 0-7", for a line about one rank; empty if it has neither.
std::string rank_place(const doctor::Situation& situation, const job::Choices& choices, size_t host, size_t local_rank);

}  // namespace phalanx::view
