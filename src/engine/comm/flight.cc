#include "engine/comm/flight.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/operation.h"

namespace phalanx::engine::comm {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void FlightRing::add_group(const std::string& name, const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  groups_[name] = ranks;
}

FlightRing::Entry* FlightRing::entry(uint64_t number) {
  Entry& one = ring_[(number - 1) % kEntries];
  return one.number == number ? &one : nullptr;
}

uint64_t FlightRing::scheduled(const std::string& group, const Operation& operation) {
  std::lock_guard lock(mutex_);
  const uint64_t number = ++numbers_;
  if (ring_.size() < kEntries) ring_.emplace_back();
  Entry& one = ring_[(number - 1) % kEntries];
  one.number = number;
  one.group = group;
  one.name = fmt::format("{} ({})", name_of(operation.kind), operation.label);
  one.dtype = operation.kind == Kind::kBarrier ? "" : c10::toString(dtype_of(operation));
  one.sequence = operation.sequence;
  one.input = elements_of(operation);
  one.output = operation.output.defined() ? operation.output.numel() : 0;
  one.times = {now_ns(), 0, 0};
  return number;
}

void FlightRing::started(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (Entry* one = entry(number)) one->times[1] = now_ns();
}

void FlightRing::completed(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (Entry* one = entry(number)) one->times[2] = now_ns();
}

std::string FlightRing::dump() const {
  std::lock_guard lock(mutex_);
  base::Json groups = base::Json::object();
  for (const auto& [name, ranks] : groups_)
    groups[name] = {{"name", name}, {"desc", name}, {"ranks", fmt::format("[{}]", fmt::join(ranks, ", "))}};
  base::Json entries = base::Json::array();
  for (size_t i = 0; i < ring_.size(); ++i) {
    const Entry& one = ring_[(numbers_ + i) % ring_.size()];  // the oldest first
    const bool sized = !one.dtype.empty();
    const auto sizes = [sized](int64_t elements) {
      base::Json list = base::Json::array();
      if (sized) list.push_back(base::Json::array({elements}));
      return list;
    };
    const base::Json dtypes = sized ? base::Json::array({one.dtype}) : base::Json::array();
    entries.push_back({{"record_id", one.number - 1},
                       {"process_group", base::Json::array({one.group, one.group})},
                       {"collective_seq_id", one.sequence},
                       {"is_p2p", false},
                       {"profiling_name", "phalanx:" + base::printable(one.name, 200)},
                       {"input_sizes", sizes(one.input)},
                       {"input_dtypes", dtypes},
                       {"output_sizes", sizes(one.output)},
                       {"output_dtypes", dtypes},
                       {"state", one.times[2]   ? "completed"
                                 : one.times[1] ? "started"
                                                : "scheduled"},
                       {"time_created_ns", one.times[0]},
                       {"time_discovered_started_ns", one.times[1]},
                       {"time_discovered_completed_ns", one.times[2]}});
  }
  return base::Json({{"version", "2.10"}, {"writer", "phalanx-train"}, {"pg_config", groups}, {"entries", entries}}).dump();
}

void FlightRing::write() const {
  if (file_.empty()) return;
  const std::string text = dump(), next = file_ + ".new";
  FILE* file = std::fopen(next.c_str(), "we");
  if (!file) return;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && whole) std::rename(next.c_str(), file_.c_str());
}

base::Result<std::unique_ptr<FlightPipe>> FlightPipe::listen(const FlightRing& ring, const std::string& path) {
  if (mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) return base::system_error("mkfifo", path);
  // For writing too: so there is always a writer, and a read waits for a byte instead of telling the end.
  os::Fd fifo(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fifo.valid()) return base::system_error("open", path);
  struct stat about{};
  if (fstat(fifo.get(), &about) != 0 || !S_ISFIFO(about.st_mode))
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} is not a FIFO", path));
  TRY_ASSIGN(os::PipeEnds end, os::make_pipe());
  return std::unique_ptr<FlightPipe>(new FlightPipe(ring, path, std::move(fifo), std::move(end)));
}

FlightPipe::FlightPipe(const FlightRing& ring, std::string path, os::Fd fifo, os::PipeEnds end)
    : ring_(ring), path_(std::move(path)), fifo_(std::move(fifo)), end_(std::move(end)), thread_([this] { work(); }) {}

FlightPipe::~FlightPipe() {
  end_.write.reset();
  thread_.join();
  unlink(path_.c_str());
}

void FlightPipe::work() {
  while (true) {
    pollfd both[2] = {{fifo_.get(), POLLIN, 0}, {end_.read.get(), POLLIN, 0}};
    if (poll(both, 2, -1) < 0 && errno != EINTR) return;
    if (both[1].revents) return;
    if (!both[0].revents) continue;
    char bytes[64];
    while (read(fifo_.get(), bytes, sizeof bytes) > 0) continue;
    ring_.write();
  }
}

FlightFiles flight_files(const Lookup& lookup, int rank) {
  const auto first_of = [&lookup](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (auto value = lookup(name)) return *value;
    return std::string();
  };
  const std::string ours = lookup("PHALANX_FLIGHT_FILE").value_or("");
  std::string dump = first_of({"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}),
              pipe = first_of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE"});
  if (dump.empty()) dump = ours;
  if (pipe.empty()) pipe = ours;
  FlightFiles files;
  if (!dump.empty()) files.dump = dump + std::to_string(rank);
  if (!dump.empty() && !pipe.empty()) files.pipe = fmt::format("{}{}.pipe", pipe, rank);
  return files;
}

}  // namespace phalanx::engine::comm
