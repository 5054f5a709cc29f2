// What one host offers to the choice of GPUs, and the words about it. Inside choose_gpus().
#pragma once

#include <string>
#include <vector>

#include "job/choose/parts.h"

namespace phalanx::job {

// Pointers go into the situation's facts.
struct GpuPool {
  enum class Word { kNone, kList, kVisible };  // the user's: --gpus of this host, CUDA_VISIBLE_DEVICES
  Word word = Word::kNone;
  bool open = false;                       // there is something to choose from
  int asked = 0;                           // ranks by --gpus N, slots or --nproc-per-node; 0: not asked
  bool insisted = false;                   // by --gpus: less is refused
  std::vector<const machine::Gpu*> given;  // by the user's word, in its order
  std::vector<const machine::Gpu*> fit;    // where there is no such word: fit and free; with the busy ones where those are too few
  std::vector<const machine::Gpu*> seen;   // unless --gpus gives a number, a rank may use more than its own: the free ones, or those given
  std::vector<doctor::Words> left_out;     // why the others are neither

  const std::vector<const machine::Gpu*>& from() const { return word == Word::kNone ? fit : given; }
  int count_of(const std::string& model) const;
};

// Adds to the refusals what --gpus names and the host does not have; says in gpus_why why a pool is not open.
GpuPool look_at_gpus(const doctor::Situation& situation, const GpuRequest& wish, size_t host, Choices& choices);

// limit: why there are no more of the same.
void explain_gpus(const machine::GpuFacts& facts, const GpuPool& pool, const std::vector<const machine::Gpu*>& used,
                  const doctor::Words& limit, HostChoice& choice);
// What is wrong with the GPUs that are used all the same.
void judge_gpus(const doctor::HostView& host, const GpuPool& pool, const std::vector<const machine::Gpu*>& used, Choices& choices);

}  // namespace phalanx::job
