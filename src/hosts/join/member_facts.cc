#include "hosts/join/member_facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "wire/codec.h"
#include "wire/sealed.h"

namespace phalanx::hosts {
namespace {

constexpr size_t kMostName = 255;
constexpr uint32_t kMostNodes = 65'536;

bool is_name(std::string_view text, std::string_view more) {
  return text.size() <= kMostName && std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || more.find(c) != std::string_view::npos;
         });
}

std::string or_default(const std::string& ranks) { return ranks.empty() ? "without --nproc-per-node" : "with --nproc-per-node " + ranks; }

}  // namespace

std::string encode(const MemberFacts& facts) {
  std::string out;
  wire::Encoder encoder(out);
  encoder.u32(facts.node_rank);
  encoder.u32(facts.nodes);
  encoder.str(facts.build);
  encoder.str(facts.hostname);
  encoder.str(facts.ranks);
  encoder.strs(facts.command);
  return out;
}

base::Status fits_a_record(const MemberFacts& facts) {
  if (encode(facts).size() <= wire::kMostRecordBytes) return base::ok();
  return base::fail(base::ErrorKind::kUsage,
                    base::counted("the command has {} words, which together are too long for --node-rank", facts.command.size()))
      .because(fmt::format("each node sends its command to node 0, at most {}", base::format_bytes(wire::kMostRecordBytes)))
      .with_hint("put the names into a file, and have the program read it");
}

base::Result<MemberFacts> decode_member_facts(std::string_view payload) {
  MemberFacts facts;
  wire::Decoder decoder(payload);
  facts.node_rank = decoder.u32();
  facts.nodes = decoder.u32();
  facts.build = decoder.str();
  facts.hostname = decoder.str();
  facts.ranks = decoder.str();
  facts.command = decoder.strs();
  const bool sound = decoder.done() && facts.node_rank < kMostNodes && facts.nodes <= kMostNodes && is_name(facts.build, "") &&
                     !facts.hostname.empty() && is_name(facts.hostname, "._-") && !facts.hostname.starts_with('-') &&
                     is_name(facts.ranks, "");
  if (!sound) return base::fail(base::ErrorKind::kInternal, "what the node says of itself cannot be read");
  return facts;
}

std::string disagreement(const MemberFacts& node0, const MemberFacts& other) {
  const std::string who = fmt::format("node {} ({})", other.node_rank, other.hostname);
  if (other.build != node0.build) return fmt::format("{} has another version of phalanx than node 0 ({})", who, node0.hostname);
  if (other.nodes != node0.nodes)
    return fmt::format("{} was started with --nnodes {}, node 0 with --nnodes {}", who, other.nodes, node0.nodes);
  if (other.node_rank == 0) return fmt::format("node rank 0 is given twice: on {} and on {}", node0.hostname, other.hostname);
  if (other.node_rank >= node0.nodes)
    return fmt::format("{}: with --nnodes {} the highest node rank is {}", who, node0.nodes, node0.nodes - 1);
  if (other.ranks != node0.ranks) return fmt::format("{} was started {}, node 0 {}", who, or_default(other.ranks), or_default(node0.ranks));
  if (other.command == node0.command) return "";
  const auto differs = std::mismatch(node0.command.begin(), node0.command.end(), other.command.begin(), other.command.end());
  return fmt::format("{} was started with another command than node 0: word {} differs", who, differs.first - node0.command.begin() + 1);
}

}  // namespace phalanx::hosts
