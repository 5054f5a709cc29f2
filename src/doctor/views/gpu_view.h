// What the GPU rows share: how a card is called, which cards a rank of a host sees, and rows of several files as one list.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "doctor/catalogue.h"
#include "machine/gpu/cuda_order.h"

namespace phalanx::doctor {

std::string model(const std::string& name);       // "NVIDIA GeForce RTX 3090" → "RTX 3090"
std::string card(const machine::Gpu& gpu);        // "GPU 1 (RTX 3090)"
std::string capability(const machine::Gpu& gpu);  // "8.6", empty: unknown
const machine::Gpu* find_gpu(const machine::GpuFacts& facts, int64_t index);
// "GPU 0–3 (A100)" for several of one model, else each by itself.
std::string cards(const std::vector<const machine::Gpu*>& gpus);

// CUDA_VISIBLE_DEVICES as ranks of a host would get it, read in the order they would get (PCI_BUS_ID unless the user set another:
// that is what a run sets) and in both.
struct Seen {
  std::optional<std::string> value;
  machine::Selection ranks, by_pci, by_speed;
  bool order_set = false;  // by the user, to a word CUDA knows
};
Seen seen(const Situation& situation, size_t host);
Words set_to(const Seen& seen);  // "CUDA_VISIBLE_DEVICES=0,2"
bool has_devices(const Situation& situation, size_t host);
std::vector<const machine::Gpu*> gpus_of(const machine::GpuFacts& facts, const std::vector<int64_t>& indices);

// Calls what(h, gpu) for every GPU of every probed host that can be asked.
template <typename What>
void each_gpu(const Situation& situation, What what) {
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    for (const machine::Gpu& g : situation.hosts[h].facts.gpus.devices)
      if (g.fault.empty()) what(h, g);
}

}  // namespace phalanx::doctor
