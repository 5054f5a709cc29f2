// What a host has left of the attempt that ended, asked in a new login. Whoever is asked kills at once what it finds: the run has given
// that host up, and its ranks must not meet those of the next attempt.
#include <algorithm>

#include "job/runner.h"
#include "wire/control_messages.h"

namespace phalanx::job {

void Runner::prove_empty(const std::vector<size_t>& candidates) {
  end_proof();
  std::vector<hosts::Opener::Host> hosts;
  for (size_t m : candidates) hosts.push_back({run_->pool[m].request.target, transports_[m]});
  auto answer = [this, number = run_->number](size_t candidate, HostProved::Proof proof) {
    if (run_->waiting && run_->number == number) feed(HostProved{proof, candidate});
  };
  prover_ = std::make_unique<hosts::Opener>(
      loop_, *payload_, std::move(hosts), options_,
      hosts::Opener::Handlers{[this, candidates, number = run_->number](size_t place, const wire::Frame& frame) {
                                if (run_->waiting && run_->number == number) on_proof_frame(place, candidates[place], frame);
                              },
                              [answer, candidates](size_t place, const base::Error&, std::optional<wire::GuardEnd>) {
                                answer(candidates[place], HostProved::Proof::kUnknown);  // if it has not answered before
                              }},
      static_cast<uint32_t>(run_->number));
  prover_->start();
}

void Runner::on_proof_frame(size_t place, size_t candidate, const wire::Frame& frame) {
  std::string frames;
  if (frame.type == wire::FrameType::kHello) {
    (void)wire::encode(frames, wire::Sweep{state().job.run_id, 0});
    feed(HostProved{HostProved::Proof::kAsked, candidate});
  } else if (frame.type == wire::FrameType::kSwept) {
    base::Result<wire::Swept> swept = wire::decode<wire::Swept>(frame.payload);
    bool known = swept.ok() && swept->unseen.empty();
    bool gone = known && std::all_of(swept->found.begin(), swept->found.end(), [](const wire::SweptProcess& p) { return p.gone; });
    feed(HostProved{!known ? HostProved::Proof::kUnknown : gone ? HostProved::Proof::kEmpty : HostProved::Proof::kLeft, candidate});
    (void)wire::encode(frames, wire::Finish{});
  }
  hosts::Connection* connection = prover_ && !frames.empty() ? prover_->connection(place) : nullptr;
  if (connection) connection->send(frames);
}

void Runner::end_proof() {
  if (!prover_) return;
  prover_->shut();
  closing_.push_back(std::move(prover_));
}

}  // namespace phalanx::job
