#include "logs/nccl/log.h"

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::logs {
namespace {

constexpr size_t kNone = SIZE_MAX;

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

}  // namespace

std::string NcclLog::kept(std::string_view text) const { return base::printable(std::string(text.substr(0, limits_.text)), limits_.text); }

void NcclLog::line(std::string_view line, uint64_t number) {
  if (line.find("NCCL ") == std::string_view::npos) return;
  for (const NcclRecord& record : nccl_records(line)) {
    ++topology_.records;
    if (record.level == NcclRecord::Level::kVersion) {
      version(record.message, nullptr);
      continue;
    }
    size_t process = process_of(record);
    if (process == kNone) {
      ++topology_.left_out;
    } else if (record.level == NcclRecord::Level::kWarn) {
      warn(record, process, number);
    } else if (!of_process(record.message, topology_.processes[process])) {
      of_rank(record, process, number);
    }
  }
}

void NcclLog::version(std::string_view text, NcclProcess* process) {
  NcclScanner scan(text);
  if (!scan.literal("NCCL version ")) return;
  std::string version = kept(scan.word());
  if (version.empty() || version.size() > 40) return;
  if (process) process->version = version;
  std::vector<std::string>& all = topology_.versions;
  if (!process && all.size() < 16 && std::find(all.begin(), all.end(), version) == all.end()) all.push_back(version);
}

size_t NcclLog::process_of(const NcclRecord& record) {
  std::pair<std::string, int64_t> name(record.host.substr(0, 255), record.pid);
  auto found = process_by_name_.find(name);
  if (found != process_by_name_.end()) return found->second;
  // A line that begins in the middle of another's: "…Channel 00 : 0[1agpu01:12:13 [0] NCCL INFO …".
  for (size_t cut = 1; cut + 4 <= name.first.size(); ++cut)  // shorter names prove nothing
    if (auto tail = process_by_name_.find({name.first.substr(cut), name.second}); tail != process_by_name_.end()) return tail->second;
  if (topology_.processes.size() >= limits_.processes) return kNone;
  size_t index = topology_.processes.size();
  topology_.processes.push_back({});
  topology_.processes.back().host = name.first;
  topology_.processes.back().pid = record.pid;
  process_by_name_.emplace(std::move(name), index);
  return index;
}

void NcclLog::warn(const NcclRecord& record, size_t process, uint64_t number) {
  for (NcclWarning& w : topology_.warnings)
    if (w.process == process && w.place == record.place && w.text == kept(record.message)) {
      ++w.count;
      return;
    }
  if (topology_.warnings.size() >= limits_.warnings) {
    ++topology_.left_out;
    return;
  }
  topology_.warnings.push_back({process, record.device, kept(record.place), kept(record.message), number, 1});
}

NcclLog::Seat* NcclLog::current(size_t process, int64_t thread) {
  auto found = current_.find({process, thread});
  return found == current_.end() ? nullptr : &seats_[process][found->second];
}

// The rank that fits the device, the newest first.
NcclLog::Seat* NcclLog::latest(size_t process, const NcclRecord& record) {
  std::vector<Seat>& seats = seats_[process];
  for (size_t i = seats.size(); i-- > 0;) {
    int device = at(seats[i]).cuda_device;
    if (device == -1 || record.device == -1 || device == record.device) return &seats[i];
  }
  return nullptr;
}

NcclLog::Seat* NcclLog::latest(size_t process, const NcclRecord& record, int rank) {
  std::vector<Seat>& seats = seats_[process];
  for (size_t i = seats.size(); i-- > 0;) {
    int device = at(seats[i]).cuda_device;
    if (seats[i].rank == rank && (device == -1 || record.device == -1 || device == record.device)) return &seats[i];
  }
  return nullptr;
}

NcclLog::Seat* NcclLog::sit(size_t process, int64_t thread, size_t communicator, int rank) {
  if (communicator == kNone) return nullptr;
  std::map<int, NcclRank>& ranks = topology_.communicators[communicator].ranks;
  if (ranks.find(rank) == ranks.end() && ++ranks_ > limits_.ranks) {
    ++topology_.left_out;
    return nullptr;
  }
  ranks[rank].process = process;
  std::vector<Seat>& seats = seats_[process];
  for (size_t i = seats.size(); i-- > 0;)
    if (seats[i].communicator == communicator && seats[i].rank == rank) {
      current_[{process, thread}] = i;
      return &seats[i];
    }
  if (seats.size() >= limits_.seats) {
    ++topology_.left_out;
    return nullptr;
  }
  seats.push_back({communicator, rank});
  current_[{process, thread}] = seats.size() - 1;
  return &seats.back();
}

// The communicator with this id; without an id the first of this size in which the rank is free; for rank -1 a new one without a name.
size_t NcclLog::communicator(const std::string& id, int size, int rank) {
  std::vector<NcclCommunicator>& all = topology_.communicators;
  if (!id.empty()) {
    if (auto found = communicator_by_id_.find(id); found != communicator_by_id_.end()) return found->second;
  } else if (rank >= 0) {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].id.empty() && !unnamed_[i] && all[i].size == size && all[i].ranks.count(rank) == 0) return i;
  }
  if (all.size() >= limits_.communicators) {
    ++topology_.left_out;
    return kNone;
  }
  all.emplace_back();
  all.back().id = id;
  all.back().size = size;
  unnamed_.push_back(rank < 0);
  if (!id.empty()) communicator_by_id_[id] = all.size() - 1;
  return all.size() - 1;
}

// The rank that this thread is building. Where no Init START has come before (until 2.18.1), one that has no name yet.
NcclLog::Seat* NcclLog::building(size_t process, const NcclRecord& record, int rank) {
  Seat* seat = current(process, record.tid);
  bool over = seat && at(*seat).complete && !at(*seat).started && !unnamed_[seat->communicator];
  if (seat && !over) { return seat->rank == rank ? seat : latest(process, record, rank); }
  if (seat = latest(process, record, rank); seat && at(*seat).started) return seat;  // connecting on another thread
  seat = sit(process, record.tid, communicator("", 0, -1), rank);
  if (seat) at(*seat).cuda_device = record.device;
  return seat;
}

// What was said before the name was known goes to the communicator of that name.
NcclLog::Seat* NcclLog::name(Seat* seat, size_t communicator, int rank) {
  if (seat->communicator == communicator && seat->rank == rank) return seat;
  NcclCommunicator& from = topology_.communicators[seat->communicator];
  NcclCommunicator& to = topology_.communicators[communicator];
  auto moved = from.ranks.extract(seat->rank);
  if (moved.empty()) return nullptr;
  if (to.ranks.count(rank) != 0) --ranks_;
  to.ranks[rank] = std::move(moved.mapped());
  if (&from != &to) {
    for (auto& [key, edge] : from.edges) {
      NcclEdge& there = to.edges.try_emplace(key, edge).first->second;
      there.sent |= edge.sent;
      there.received |= edge.received;
    }
    if (to.ring.empty()) to.ring = from.ring;
    to.rings = std::max(to.rings, from.rings);
    to.nvls_tree += from.nvls_tree;
    if (to.size == 0) to.size = from.size;
    from = NcclCommunicator();
  }
  seat->communicator = communicator;
  seat->rank = rank;
  return seat;
}

// Ranks of which no line named a communicator: those of the same turn in their processes are taken as one.
void NcclLog::gather_unnamed() {
  std::map<size_t, size_t> turn;  // by process
  std::vector<size_t> gathered;   // by turn: a communicator
  for (size_t i = 0; i < topology_.communicators.size(); ++i) {
    NcclCommunicator& lone = topology_.communicators[i];
    if (!unnamed_[i] || lone.ranks.empty()) continue;
    int rank = lone.ranks.begin()->first;
    size_t n = turn[lone.ranks.begin()->second.process]++;
    size_t home = kNone;
    for (size_t k = n; home == kNone && k < gathered.size(); ++k)
      if (topology_.communicators[gathered[k]].ranks.count(rank) == 0) home = gathered[k];
    if (home == kNone) {
      gathered.push_back(i);
    } else {
      Seat seat{i, rank};
      name(&seat, home, rank);
    }
  }
  std::erase_if(topology_.communicators, [](const NcclCommunicator& c) { return c.ranks.empty(); });
}

NcclTopology NcclLog::finish() {
  gather_unnamed();
  return std::move(topology_);
}

bool NcclLog::of_process(std::string_view message, NcclProcess& process) {
  NcclScanner scan(message);
  auto list = [&](std::vector<std::string>& items) {  // " [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB …"
    items.clear();
    for (std::string_view word = scan.word(); !word.empty() && items.size() < 64; word = scan.word()) {
      size_t close = word.find(']');
      if (word[0] != '[' || close == std::string_view::npos || word[1] < '0' || word[1] > '9') break;
      std::string_view item = word.substr(close + 1);
      if (!item.empty() && item.back() == ';') item.remove_suffix(1);
      items.push_back(kept(item));
    }
    return true;
  };
  if (scan.literal("Bootstrap : Using ") || scan.literal("Bootstrap: Using ")) {
    scan.literal("[0]");
    process.bootstrap_interface = kept(scan.until(':'));
    process.bootstrap_address = kept(scan.until('<'));
    return true;
  }
  if (scan.literal("NET/IB : Using")) return list(process.ib_devices);
  if (scan.literal("NET/IB : No device found") || scan.literal("Failed to open libibverbs.so")) return process.ib_none = true;
  if (scan.literal("NET/Socket : Using")) return list(process.socket_interfaces);
  if (scan.literal("Using network ") || scan.literal("Assigned NET plugin ")) {
    std::string_view name = scan.rest();
    process.network = kept(name.substr(0, name.find(" to comm")));
    return true;
  }
  if (starts(message, "NET/Plugin") && message.find("Loaded net plugin ") != std::string_view::npos) {
    std::string_view name = message.substr(message.find("Loaded net plugin ") + 18);
    process.plugin = kept(name.substr(0, name.find(' ')));
    return true;
  }
  if (starts(message, "NET/") && message.find("GPU Direct RDMA Disabled for HCA") != std::string_view::npos)
    return ++process.devices_without_gdr, true;
  if (starts(message, "NCCL version ")) return version(message, &process), true;
  size_t set = message.find(" set by environment to ");
  if (starts(message, "NCCL_") && set != std::string_view::npos && process.settings.size() < 128) {
    std::string_view value = message.substr(set + 23);
    if (!value.empty() && value.back() == '.') value.remove_suffix(1);
    process.settings[kept(message.substr(0, set))] = kept(value);
    return true;
  }
  std::string_view where = scan.word();  // "init.cc:1501 -> 3 [Async thread]"
  if (process.first_error.empty() && where.find(".cc:") != std::string_view::npos && scan.literal(" -> ") && scan.number())
    process.first_error = kept(message);
  return false;
}

}  // namespace phalanx::logs
