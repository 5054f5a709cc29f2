// Rebuilds from NCCL's INFO lines, of any number of ranks in any interleaving, what NCCL had built: who is in which communicator, on which
// host and GPU, over which transports, and where each rank stopped. Versions 2.10 to 2.30; docs/formats/nccl-log.md has the lines.
//
// A line belongs to the communicator its thread is building; where NCCL does not say (connecting at the first collective, since 2.22, on
// other threads), to the latest communicator of the process in which the rank and the device fit. Before 2.18.3 a communicator is named
// only by "Init COMPLETE": what was said before is kept apart until then; what never gets a name is put together by rank.
//
// Memory is bounded by the limits below; what is beyond them is counted in NcclTopology::left_out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "logs/nccl/line.h"
#include "logs/nccl/topology.h"

namespace phalanx::logs {

struct NcclLimits {
  size_t processes = 1 << 15;
  size_t communicators = 1 << 12;
  size_t ranks = 1 << 17;  // over all communicators
  size_t seats = 1 << 12;  // ranks of one process, over all communicators
  size_t edges = 1 << 18;
  size_t warnings = 256;
  size_t text = 200;  // of one text that is kept
};

class NcclLog {
 public:
  explicit NcclLog(const NcclLimits& limits = {}) : limits_(limits) {}

  // One line without its end; `number` is only kept. Lines that are not NCCL's cost one search.
  void line(std::string_view line, uint64_t number);
  // What was read so far. The log takes no more after this.
  NcclTopology finish();

 private:
  struct Seat {  // a rank's place in a communicator
    size_t communicator = 0;
    int rank = 0;
  };
  struct Identity;  // what a line with "comm 0x…" says

  void version(std::string_view text, NcclProcess* process);
  void warn(const NcclRecord& record, size_t process, uint64_t number);
  bool of_process(std::string_view message, NcclProcess& process);
  void of_rank(const NcclRecord& record, size_t process, uint64_t number);

  Seat* identity(const NcclRecord& record, size_t process);
  Seat* begin(const NcclRecord& record, size_t process, const Identity& said);
  Seat* end(const NcclRecord& record, size_t process, const Identity& said);
  Seat* nodes(const NcclRecord& record, size_t process);
  Seat* channel(const NcclRecord& record, size_t process);
  Seat* ring(const NcclRecord& record, size_t process, NcclScanner scan, int64_t count);
  Seat* edge(const NcclRecord& record, size_t process, NcclScanner scan, int64_t number, std::optional<int64_t> connection);
  Seat* trees(const NcclRecord& record, size_t process);
  Seat* progress(const NcclRecord& record, size_t process);

  size_t process_of(const NcclRecord& record);
  Seat* current(size_t process, int64_t thread);
  Seat* latest(size_t process, const NcclRecord& record);
  Seat* latest(size_t process, const NcclRecord& record, int rank);
  Seat* building(size_t process, const NcclRecord& record, int rank);
  Seat* sit(size_t process, int64_t thread, size_t communicator, int rank);
  size_t communicator(const std::string& id, int size, int rank);
  Seat* name(Seat* seat, size_t communicator, int rank);
  void gather_unnamed();
  NcclRank& at(const Seat& seat) { return topology_.communicators[seat.communicator].ranks[seat.rank]; }
  std::string kept(std::string_view text) const;

  NcclLimits limits_;
  NcclTopology topology_;
  std::map<std::pair<std::string, int64_t>, size_t> process_by_name_;
  std::map<std::string, size_t> communicator_by_id_;
  std::map<std::pair<size_t, std::string>, size_t> communicator_by_pointer_;  // (process, "0x…")
  std::map<size_t, std::vector<Seat>> seats_;                                 // by process, oldest first
  std::map<std::pair<size_t, int64_t>, size_t> current_;                      // (process, thread) → index in its seats
  std::vector<bool> unnamed_;  // by communicator: it holds what one rank said of one that has no name yet
  size_t ranks_ = 0, edges_ = 0;
};

}  // namespace phalanx::logs
