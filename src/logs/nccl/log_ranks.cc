// The lines that tell of one rank in one communicator.
#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "logs/nccl/log.h"

namespace phalanx::logs {
namespace {

constexpr int kMostRank = 1 << 22;

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

int small(std::optional<int64_t> number, int otherwise) {
  return number && *number >= 0 && *number <= kMostRank ? static_cast<int>(*number) : otherwise;
}

double seconds(std::string_view text) {
  char* end = nullptr;
  std::string copy(text.substr(0, 32));
  double value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() || !(value >= 0) || value > 1e6 ? -1 : value;
}

}  // namespace

// "[Rank 3] ncclCommInitRank comm 0x… rank 3 nranks 4 cudaDev 0 nvmlDev 0 busId 1e0 commId 0x… - Init START". Fields are found by their
// names, since they differ between versions and vendors.
struct NcclLog::Identity {
  std::string function, pointer, id;
  int rank = -1, size = 0, cuda_device = -1, nvml_device = -1;
  std::string bus_id, parent, split, color;
};

NcclLog::Seat* NcclLog::identity(const NcclRecord& record, size_t process) {
  Identity said;
  NcclScanner scan(record.message);
  std::string_view before;
  for (std::string_view word = scan.word(); !word.empty() && word != "-"; before = word, word = scan.word()) {
    NcclScanner value(word);
    if (word == "comm" && starts(before, "nccl")) said.function = kept(before);
    if (before == "comm") said.pointer = kept(word);
    if (before == "rank") said.rank = small(value.number(), -1);
    if (before == "nranks") said.size = small(value.number(), 0);
    if (before == "cudaDev") said.cuda_device = small(value.number(), -1);
    if (before == "nvmlDev") said.nvml_device = small(value.number(), -1);
    if (before == "busId") said.bus_id = kept(word);
    if (before == "commId") said.id = kept(word);
    if (before == "parent") said.parent = kept(word);
    if (before == "splitCount" || before == "childCount") said.split = kept(word);
    if (before == "color") said.color = kept(word);
  }
  if (said.rank < 0 || said.size == 0 || said.rank >= said.size) return nullptr;
  bool start = ends(record.message, "Init START"), complete = ends(record.message, "Init COMPLETE");
  if (start || complete) {
    Seat* seat = begin(record, process, said);
    if (!seat) return nullptr;
    NcclRank& rank = at(*seat);
    (start ? rank.started : rank.complete) = true;
    rank.laid_out |= complete;
    rank.cuda_device = said.cuda_device;
    rank.nvml_device = said.nvml_device;
    rank.bus_id = said.bus_id;
    NcclCommunicator& c = topology_.communicators[seat->communicator];
    c.size = said.size;
    if (!said.function.empty()) c.function = said.function;
    return seat;
  }
  return end(record, process, said);
}

NcclLog::Seat* NcclLog::begin(const NcclRecord& record, size_t process, const Identity& said) {
  std::string id = said.id;
  std::pair<size_t, std::string> pointer(process, said.pointer);
  if (id.empty() && !said.parent.empty() && said.parent != "(nil)") {
    // A split has no id of its own in the line since 2.23: its parent, its turn and its colour name it.
    auto parent = communicator_by_pointer_.find({process, said.parent});
    if (parent != communicator_by_pointer_.end()) {
      const std::string& from = topology_.communicators[parent->second].id;
      if (!from.empty()) id = kept(from + "/split " + said.split + " color " + said.color);
    }
  }
  Seat* seat = current(process, record.tid);
  auto known = communicator_by_pointer_.find(pointer);
  size_t to = SIZE_MAX;
  if (known != communicator_by_pointer_.end() && ends(record.message, "COMPLETE")) {
    NcclCommunicator& c = topology_.communicators[known->second];
    auto there = c.ranks.find(said.rank);
    if (c.size == said.size && there != c.ranks.end() && !there->second.complete && (id.empty() || id == c.id)) to = known->second;
  }
  if (to == SIZE_MAX) to = communicator(id, said.size, said.rank);
  if (to == SIZE_MAX) return nullptr;
  if (communicator_by_pointer_.size() < limits_.ranks) communicator_by_pointer_[pointer] = to;
  if (seat && unnamed_[seat->communicator] && seat->rank == said.rank) return name(seat, to, said.rank);
  return sit(process, record.tid, to, said.rank);
}

// "comm 0x… rank 0 nranks 2 cudaDev 0 busId 1e0 - Destroy COMPLETE"
NcclLog::Seat* NcclLog::end(const NcclRecord& record, size_t process, const Identity& said) {
  bool aborted = ends(record.message, "Abort COMPLETE");
  if (!aborted && !ends(record.message, "Destroy COMPLETE")) return nullptr;
  auto found = communicator_by_pointer_.find({process, said.pointer});
  for (Seat& seat : seats_[process])
    if (found != communicator_by_pointer_.end() && seat.communicator == found->second && seat.rank == said.rank) {
      (aborted ? at(seat).aborted : at(seat).destroyed) = true;
      return &seat;
    }
  return nullptr;
}

// "comm 0x… rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0", since 2.20
NcclLog::Seat* NcclLog::nodes(const NcclRecord& record, size_t process) {
  NcclScanner scan(record.message);
  int rank = -1, size = 0, nodes = 0, local = 0;
  std::string_view before;
  for (std::string_view word = scan.word(); !word.empty(); before = word, word = scan.word()) {
    NcclScanner value(word);
    if (before == "rank") rank = small(value.number(), -1);
    if (before == "nRanks") size = small(value.number(), 0);
    if (before == "nNodes") nodes = small(value.number(), 0);
    if (before == "localRanks") local = small(value.number(), 0);
  }
  if (rank < 0 || size == 0) return nullptr;
  Seat* seat = building(process, record, rank);
  if (!seat) return nullptr;
  at(*seat).laid_out = true;
  at(*seat).nodes = nodes;
  at(*seat).local_ranks = local;
  NcclCommunicator& c = topology_.communicators[seat->communicator];
  if (c.size == 0) c.size = size;
  return seat;
}

// Of a ring, "Channel 00/02 :    0   1", or of an edge, "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0".
NcclLog::Seat* NcclLog::channel(const NcclRecord& record, size_t process) {
  NcclScanner scan(record.message);
  if (!scan.literal("Channel ")) return nullptr;
  std::optional<int64_t> number = scan.number(), count;
  if (!number || *number < 0) return nullptr;
  if (scan.literal("/")) count = scan.number();
  scan.blanks();
  if (!scan.literal(":")) return nullptr;
  scan.blanks();
  NcclScanner ahead = scan;
  if (!ahead.number()) return nullptr;
  if (ahead.literal("[")) return edge(record, process, scan, *number, count);
  return count ? ring(record, process, scan, *count) : nullptr;
}

NcclLog::Seat* NcclLog::ring(const NcclRecord& record, size_t process, NcclScanner scan, int64_t count) {
  std::vector<int> ranks;
  bool whole = true;
  for (std::string_view word = scan.word(); !word.empty() && ranks.size() < 4096; word = scan.word()) {
    NcclScanner value(word);
    int rank = small(value.number(), -1);
    whole = whole && rank >= 0 && value.rest().empty();
    if (!whole) break;
    ranks.push_back(rank);
  }
  Seat* seat = building(process, record, 0);  // rank 0 alone tells of rings
  if (!seat) return nullptr;
  at(*seat).laid_out = true;
  NcclCommunicator& c = topology_.communicators[seat->communicator];
  c.rings = std::max(c.rings, small(count, 0));
  if (c.ring.empty()) c.ring = ranks;
  return seat;
}

NcclLog::Seat* NcclLog::edge(const NcclRecord& record, size_t process, NcclScanner scan, int64_t number,
                             std::optional<int64_t> connection) {
  auto end = [&]() -> int {
    int rank = small(scan.number(), -1);
    return scan.literal("[") && !scan.hex().empty() && scan.literal("]") ? rank : -1;
  };
  int from = end();
  if (from < 0 || !scan.literal(" -> ")) return nullptr;
  int to = end();
  if (to < 0) return nullptr;
  scan.blanks();
  bool sends = scan.literal("[send] "), receives = !sends && scan.literal("[receive] ");
  if (!scan.literal("via ")) return nullptr;
  std::string transport = kept(scan.rest().substr(0, scan.rest().find(" comm ")));  // RCCL says its communicator behind it
  if (transport == "direct shared memory") transport = "SHM/direct";                // until 2.12
  int proxy = -1;
  if (size_t open = transport.find('('); open != std::string::npos && starts(transport, "NET/")) {
    NcclScanner inside(std::string_view(transport).substr(open + 1));
    if (std::optional<int64_t> rank = inside.number(); rank && inside.literal(")")) {
      proxy = small(rank, -1);
      transport = transport.substr(0, open) + std::string(inside.rest());
    }
  }
  Seat* seat = building(process, record, receives ? to : from);
  if (!seat) return nullptr;
  // After the start, connection 1 is a send's or receive's own; shared memory does not say which it is.
  if (!at(*seat).complete || connection == 0) at(*seat).announced = true;
  at(*seat).laid_out = true;
  auto& edges = topology_.communicators[seat->communicator].edges;
  std::tuple<int, int, std::string> key(from, to, transport);
  auto found = edges.find(key);
  if (found == edges.end()) {
    if (++edges_ > limits_.edges) {
      ++topology_.left_out;
      return seat;
    }
    found = edges.emplace(key, NcclEdge{from, to, transport, 0, 0, -1}).first;
  }
  (receives ? found->second.received : found->second.sent) |= number < 64 ? uint64_t{1} << number : 0;
  if (proxy >= 0) found->second.proxy = proxy;
  return seat;
}

// "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1"
NcclLog::Seat* NcclLog::trees(const NcclRecord& record, size_t process) {
  NcclScanner scan(record.message);
  if (!scan.literal("Trees [0] ")) return nullptr;
  std::string_view first = scan.word();
  size_t arrow = first.find("->");
  if (arrow == std::string_view::npos) return nullptr;
  NcclScanner self(first.substr(arrow + 2));
  int rank = small(self.number(), -1);
  if (rank < 0) return nullptr;
  Seat* seat = building(process, record, rank);
  if (!seat) return nullptr;
  at(*seat).laid_out = true;
  at(*seat).tree = kept(first);
  return seat;
}

NcclLog::Seat* NcclLog::progress(const NcclRecord& record, size_t process) {
  NcclScanner scan(record.message);
  auto mine = [&] {
    Seat* seat = current(process, record.tid);
    return seat ? seat : latest(process, record);
  };
  if (scan.literal("Connected all rings")) {
    Seat* seat = mine();
    if (!seat) return nullptr;
    at(*seat).rings = true;
    if (scan.literal(", use ring PXN ")) {
      if (std::optional<int64_t> pxn = scan.number()) at(*seat).pxn = *pxn != 0;
      if (scan.literal(" GDR "))
        if (std::optional<int64_t> gdr = scan.number()) at(*seat).gdr = *gdr != 0;
    }
    return seat;
  }
  if (scan.literal("Bootstrap timings ")) {  // the last of the meeting, since 2.23
    Seat* seat = current(process, record.tid);
    if (seat) at(*seat).laid_out = true;
    return seat;
  }
  if (scan.literal("Connected all trees")) {
    Seat* seat = mine();
    if (seat) at(*seat).trees = true;
    return seat;
  }
  if (scan.literal("Connected NVLS tree")) {
    Seat* seat = mine();
    if (seat) ++topology_.communicators[seat->communicator].nvls_tree;
    return seat;
  }
  if (scan.literal("Init timings")) {
    Seat* seat = mine();
    size_t total = record.message.find(" total "), bootstrap = record.message.find("bootstrap ");
    if (!seat || total == std::string_view::npos) return nullptr;
    at(*seat).init_seconds = seconds(record.message.substr(total + 7));
    if (bootstrap != std::string_view::npos) at(*seat).bootstrap_seconds = seconds(record.message.substr(bootstrap + 10));
    return seat;
  }
  // "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer"
  std::optional<int64_t> count = scan.number();
  if (!count || !scan.literal(" coll channels, ")) return nullptr;
  Seat* seat = mine();
  if (!seat) return nullptr;
  NcclRank& rank = at(*seat);
  rank.channels = small(count, -1);
  while ((count = scan.number())) {
    if (scan.literal(" collnet channels")) rank.collnet_channels = small(count, -1);
    else if (scan.literal(" nvls channels")) rank.nvls_channels = small(count, -1);
    else if (scan.literal(" p2p channels per peer")) break;
    else if (scan.literal(" p2p channels")) rank.p2p_channels = small(count, -1);
    if (!scan.literal(", ")) break;
  }
  return seat;
}

void NcclLog::of_rank(const NcclRecord& record, size_t process, uint64_t number) {
  std::string_view m = record.message;
  Seat* seat = nullptr;
  if (starts(m, "Channel ")) {
    seat = channel(record, process);
  } else if (starts(m, "Trees ")) {
    seat = trees(record, process);
  } else if (m.find("comm 0x") != std::string_view::npos) {
    seat = m.find(" nRanks ") != std::string_view::npos ? nodes(record, process) : identity(record, process);
  } else if (size_t arrow = m.find(" Bytes -> Algo "); arrow != std::string_view::npos && m.find(':') < arrow) {
    NcclScanner scan(m.substr(arrow + 15));  // "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"
    std::string algorithm(scan.word());
    scan.literal(" proto ");
    std::string name = kept(std::string(m.substr(0, m.find(':'))) + " " + algorithm + "/" + std::string(scan.word()));
    if (topology_.algorithms.size() < 64 || topology_.algorithms.count(name) != 0) ++topology_.algorithms[name];
  } else {
    seat = progress(record, process);
  }
  if (!seat) seat = current(process, record.tid);
  if (!seat) return;
  at(*seat).last = kept(m);
  at(*seat).last_line = number;
}

}  // namespace phalanx::logs
