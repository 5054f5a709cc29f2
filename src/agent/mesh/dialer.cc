#include "agent/mesh/dialer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/mesh/dial.h"

namespace phalanx::agent {

MeshDialer::MeshDialer(os::Loop& loop, std::function<void(wire::Dialed)> done) : loop_(loop), done_(std::move(done)) {}
MeshDialer::~MeshDialer() { stop(); }

void MeshDialer::stop() {
  tries_.clear();
  if (answer_) loop_.cancel(answer_);
  answer_ = 0;
}

void MeshDialer::dial(wire::Dial request) {
  stop();
  request_ = std::move(request);
  if (request_.targets.size() > kMostTargets) request_.targets.resize(kMostTargets);
  request_.payload_bytes = std::min(request_.payload_bytes, kMostEcho);
  request_.echoes = std::min(request_.echoes, kMostEchoes);
  left_ = request_.targets.size();
  for (const wire::DialTarget& target : request_.targets)
    tries_.push_back(std::make_unique<MeshDial>(loop_, request_, target, [this] { one_done(); }));
  if (left_ == 0) {
    left_ = 1;
    one_done();
  }
}

void MeshDialer::one_done() {
  if (--left_ > 0) return;
  // Not from inside a dial: answering ends them all.
  answer_ = loop_.after(os::nanoseconds(0), [this] {
    answer_ = 0;
    wire::Dialed dialed;
    dialed.round = request_.round;
    for (const std::unique_ptr<MeshDial>& one : tries_) dialed.links.push_back(one->link());
    tries_.clear();
    done_(std::move(dialed));
  });
}

}  // namespace phalanx::agent
