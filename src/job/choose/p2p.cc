// NCCL_P2P_DISABLE. NCCL reads NVML's P2P status of every pair and goes through memory where it is not OK (NCCL,
// src/graph/paths.cc, ncclTopoCheckP2p): cards without P2P, RTX 3090s and all consumer cards since, need nothing set. One case
// does: drivers before 550.40.07 report P2P between GeForce RTX 40 cards as OK, and what goes that way is lost or never ends
// (NVIDIA/nccl-tests#117). accelerate knows the same version (utils/environment.py, check_cuda_p2p_ib_support), and sets
// NCCL_IB_DISABLE=1 with it: that is not needed, InfiniBand of such cards goes through host memory.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "job/choose/parts.h"

namespace phalanx::job {
namespace {

using doctor::Situation;
using words::tr;

// "535.129.03" → {535, 129, 3}
std::vector<int64_t> numbers(const std::string& version) {
  std::vector<int64_t> out;
  for (std::string_view part : base::split(version, '.')) {
    base::Result<int64_t> number = base::parse_int(part, 0, 1'000'000);
    if (!number.ok()) break;
    out.push_back(*number);
  }
  return out;
}

bool is_chosen(const HostChoice& choice, int64_t index) {
  return std::find(choice.gpus.begin(), choice.gpus.end(), static_cast<int>(index)) != choice.gpus.end();
}

bool is_rtx40(const machine::GpuFacts& facts, int64_t index) {
  return std::any_of(facts.devices.begin(), facts.devices.end(),
                     [&](const machine::Gpu& g) { return g.index == index && g.name.find("GeForce RTX 40") != std::string::npos; });
}

}  // namespace

void choose_p2p(const Situation& situation, Choices& choices) {
  for (size_t h = 0; h < situation.hosts.size(); ++h) {
    const machine::GpuFacts& facts = situation.hosts[h].facts.gpus;
    HostChoice& choice = choices.hosts[h];
    if (!choice.has_gpus || choice.gpus.size() < 2) continue;
    std::optional<std::string> off = users_word(situation, h, "NCCL_P2P_DISABLE");
    bool nvlink = std::any_of(facts.pairs.begin(), facts.pairs.end(), [&](const machine::GpuPair& p) {
      return is_chosen(choice, p.a) && is_chosen(choice, p.b) && p.path.rfind("NV", 0) == 0 && p.p2p_read == "ok";
    });
    if (off && *off == "1" && nvlink)
      choices.remarks.push_back(tr("{}: your NCCL_P2P_DISABLE=1 leaves NVLink unused", situation.hosts[h].name));
    if (off || users_word(situation, h, "NCCL_P2P_LEVEL")) continue;
    std::vector<int64_t> driver = numbers(facts.driver);
    bool misreported =
        !driver.empty() && driver < std::vector<int64_t>{550, 40, 7} &&
        std::any_of(
            facts.pairs.begin(), facts.pairs.end(),
            [&](const machine::GpuPair& p) {
              return is_chosen(choice, p.a) && is_chosen(choice, p.b) && is_rtx40(facts, p.a) && is_rtx40(facts, p.b) && p.p2p_read == "ok";
            });
    if (misreported)
      choice.settings.push_back(
          {"NCCL_P2P_DISABLE", "1",
           tr("driver {} wrongly reports peer-to-peer access between RTX 40 cards (fixed in 550.40.07)", facts.driver)});
  }
}

}  // namespace phalanx::job
