#include "hosts/join/joined.h"

#include <fmt/format.h>

#include "base/text.h"
#include "hosts/join/relay_to_node.h"
#include "os/files.h"

namespace phalanx::hosts {

JoinedNodes::JoinedNodes(std::vector<JoinedNode> nodes) : nodes_(std::move(nodes)) {}

void JoinedNodes::tell_all(const JoinVerdict& verdict) {
  const std::string payload = encode(verdict);
  for (JoinedNode& node : nodes_)
    if (node.socket.valid()) tell(node, wire::RecordType::kVerdict, payload);
  for (auto& [rank, pipe] : verdicts_) (void)os::write_all(pipe.get(), payload, "the verdict");  // less than an empty pipe holds
  verdicts_.clear();
}

std::vector<InheritedFd> JoinedNodes::descriptors(uint32_t node_rank) {
  for (JoinedNode& node : nodes_) {
    if (node.node_rank != node_rank || !node.socket.valid()) continue;
    base::Result<os::PipeEnds> state = os::make_pipe(), verdict = os::make_pipe();
    if (!state.ok() || !verdict.ok()) return {};
    // At most what a node may send before the start: less than an empty pipe holds.
    if (!os::set_nonblocking(state->write.get()).ok() || !os::write_all(state->write.get(), node.state, "the state").ok()) return {};
    verdicts_[node_rank] = std::move(verdict->write);
    auto own = [](os::Fd fd) { return std::make_shared<os::Fd>(std::move(fd)); };
    return {{own(std::move(node.socket)), kRelaySocket},
            {own(std::move(state->read)), kRelayState},
            {own(std::move(verdict->read)), kRelayVerdict}};
  }
  return {};
}

Launch JoinedTransport::launch(const Target& target, int) const {
  Launch launch;
  launch.argv = {os::self_executable(), "agent", "relay"};
  launch.program = os::kOwnProgram;
  launch.inherits = nodes_->descriptors(target.node_rank);
  return launch;
}

base::Error JoinedTransport::explain(const Target& target, const Death& death) const {
  return base::fail(base::ErrorKind::kUnreachable, fmt::format("{}: node {} left the run", target.name, target.node_rank))
      .because(std::string(base::trim(death.stderr_text)));
}

std::string JoinedTransport::try_by_hand(const Target& target) const { return typed(target, "true"); }

}  // namespace phalanx::hosts
