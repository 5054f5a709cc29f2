// The last operations of this rank, in all its groups, written as PyTorch's flight recorder writes them (docs/formats/flight-recorder.md),
// so that a run that stands still can be judged: when an operation fails, and when asked through a pipe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/comm/env.h"
#include "os/fd.h"

namespace phalanx::engine::comm {

struct Operation;

class FlightRing {
 public:
  static constexpr size_t kEntries = 2000;
  // file: where the dump goes; "": nowhere.
  explicit FlightRing(std::string file) : file_(std::move(file)) {}

  // A group of these ranks of the run. All its ranks give it the same name.
  void add_group(const std::string& name, const std::vector<int>& ranks);
  // An operation is asked for; the number is for the other two, which ignore it once the ring has overwritten the operation.
  uint64_t scheduled(const std::string& group, const Operation& operation);
  void started(uint64_t number);
  void completed(uint64_t number);

  std::string dump() const;  // as JSON
  // Writes the dump to the file, whole or not at all; does nothing without a file. A failure to write stays silent: it may not hide the
  // failure that is being told.
  void write() const;

 private:
  struct Entry {
    uint64_t number = 0;  // from 1
    std::string group, name, dtype;
    uint64_t sequence = 0;
    int64_t input = 0, output = 0;   // elements
    std::array<int64_t, 3> times{};  // ns since the epoch: scheduled, started, completed; 0: not yet
  };
  Entry* entry(uint64_t number);

  std::string file_;
  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  uint64_t numbers_ = 0;
  std::map<std::string, std::vector<int>> groups_;
};

// Writes the dump whenever a byte comes through the pipe (a fifo of that name, made here). A thread that sleeps until then.
class FlightPipe {
 public:
  static base::Result<std::unique_ptr<FlightPipe>> listen(const FlightRing& ring, const std::string& path);
  ~FlightPipe();

 private:
  FlightPipe(const FlightRing& ring, std::string path, os::Fd fifo, os::PipeEnds end);
  void work();
  const FlightRing& ring_;
  std::string path_;
  os::Fd fifo_;
  os::PipeEnds end_;
  std::thread thread_;
};

// Where the dump goes and where the pipe lies for this rank; "": nowhere. The variables of PyTorch, else PHALANX_FLIGHT_FILE, which
// `phalanx run` sets.
struct FlightFiles {
  std::string dump, pipe;
};
FlightFiles flight_files(const Lookup& lookup, int rank);

}  // namespace phalanx::engine::comm
