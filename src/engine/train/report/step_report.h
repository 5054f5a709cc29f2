// What the loop tells of a step, and of the run before its first step.
#pragma once

#include <cstdint>

namespace phalanx::engine::train {

// Seconds of one step on this rank.
struct StepTimes {
  double data = 0;      // reading the step's batch, on the rank that took longest
  double exchange = 0;  // until all ranks knew what the step is made of: waiting for ranks that were behind
  double forward = 0;
  double backward = 0;   // with the reductions that went on meanwhile
  double optimizer = 0;  // with the norm, and until every rank has the new parameters
  double waited = 0;     // of backward and optimizer: for other ranks and their bytes
  double rest = 0;       // of a step on a GPU: what no other part is known to have taken, the exchange too
  double all() const { return data + exchange + forward + backward + optimizer + rest; }
  double waiting() const { return exchange + waited; }
  double compute() const { return forward + backward + optimizer - waited; }
  StepTimes& operator+=(const StepTimes& other) {
    data += other.data;
    exchange += other.exchange;
    forward += other.forward;
    backward += other.backward;
    optimizer += other.optimizer;
    waited += other.waited;
    rest += other.rest;
    return *this;
  }
  StepTimes operator/(double by) const {
    return {data / by, exchange / by, forward / by, backward / by, optimizer / by, waited / by, rest / by};
  }
};

struct StepReport {
  int64_t step = 0;  // steps done
  double loss = 0;   // mean over the step's whole batch
  double lr = 0;
  double grad_norm = 0;
  bool skipped = false;        // a gradient was not finite, and loss scaling is on
  double loss_scale = 0;       // 0: losses are not scaled
  int64_t targets = 0;         // target tokens, of all ranks together
  double overlap = 0;          // share of the last backward's reductions that began while it still ran
  int64_t resident_bytes = 0;  // of the rank that has most in memory, when it was last asked
  int64_t resident_peak = 0;   // the most that any rank has had
  StepTimes times;
};

// Known when the training begins.
struct RunFacts {
  int ranks = 1;
  double flops_per_token = 0;  // of the model, forward and backward
  double peak_flops = 0;       // per second, of all ranks' devices together; 0: not known, and no MFU is told
  int64_t parameter_bytes = 0, gradient_bytes = 0, carrier_bytes = 0, optimizer_bytes = 0;  // held by this rank
  int64_t data_workers = 0;
  bool sharded = false;  // parallel.mode is not ddp
  bool tensorboard = false;
};

}  // namespace phalanx::engine::train
