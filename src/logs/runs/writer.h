// The files of a run, written by a process of their own (phalanx-logs): the launcher never waits for the disk they lie on. A log file
// system that hangs for a minute costs a run nothing but what did not fit into the queue meanwhile.
//
//   append, replace, remove → queue in memory → socket → phalanx-logs → DiskFiles → disk
//
// The queue is bounded in bytes. When it is full, what ranks print is dropped until half of it is free again; events and records, which
// are little, have kReserveBytes beyond it. What was dropped is counted and marked in the log (logs/runs/files.h), and the owner hears when
// it begins and when it is over.
//
// The process lives until it has written everything it was given, however long that takes, also when the launcher was killed. It holds the
// lock of the run (logs/runs/run_list.h) as long.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "logs/runs/files.h"
#include "os/fd.h"
#include "os/loop.h"

namespace phalanx::logs {

class Writer : public Files {
 public:
  static constexpr size_t kQueueBytes = 32 << 20;
  static constexpr size_t kReserveBytes = 16 << 20;

  struct Options {
    os::Fd lock = {};          // kept open by the process; may be invalid
    std::string reserve = {};  // as of DiskFiles
    os::Fd folder = {};        // of the run, whose path is `folder_path`: files below it are found by this descriptor; may be invalid
    std::string folder_path = {};
    size_t queue_bytes = kQueueBytes;
  };
  struct Handlers {
    Warn warn;                                   // a file cannot be written; once per file
    std::function<void()> behind;                // the queue is full: output is dropped from here on
    std::function<void(uint64_t lost)> abreast;  // half of it is free again; so many bytes were dropped meanwhile
  };

  // The loop must outlive it. Handlers are called from the loop, and from settle().
  static base::Result<std::unique_ptr<Writer>> start(os::Loop& loop, Options options, Handlers handlers);
  // What is still queued is handed to another process, which waits for the disk instead of us.
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  FileId log(const std::string& path, Form form, uint64_t most_bytes) override;
  void append_timed(FileId log, std::string_view bytes, std::span<const TimeMark> times) override;
  void replace(const std::string& path, std::string_view content) override;
  void remove(const std::string& path) override;

  // Waits until everything given so far is written or has failed, at most so long. False: the disk has not taken all of it.
  bool settle(std::chrono::milliseconds most);
  // Dropped because of the queue, and by the disk as far as we have heard (settle() hears it all).
  uint64_t lost_bytes() const { return dropped_bytes_ + disk_lost_bytes_; }
  size_t queued_bytes() const { return queued_; }

 private:
  struct Log {
    Form form = Form::kText;
    uint64_t dropped = 0;  // and not yet told to the process
  };
  Writer(os::Loop& loop, os::Fd socket, size_t queue_bytes, Handlers handlers);
  void put(uint32_t kind, uint32_t file, std::string_view head, std::string_view body);
  void tell_dropped(FileId id);
  void drop(FileId id, size_t bytes);
  void pump();
  void caught_up();
  void hear();
  void take_word(const std::string& line);
  void watch();
  void broken();

  os::Loop& loop_;
  os::Fd socket_;
  size_t bound_;
  Handlers handlers_;
  os::WatchId watch_ = 0;
  std::deque<std::string> queue_;
  size_t written_ = 0;  // of queue_.front()
  size_t queued_ = 0;   // bytes in queue_, not yet in the socket
  std::vector<Log> logs_;
  std::string heard_;  // from the process: the beginning of a line
  uint64_t asked_ = 0, answered_ = 0;
  uint64_t dropped_bytes_ = 0, disk_lost_bytes_ = 0;
  uint64_t dropped_before_ = 0;  // before the current time of dropping
  bool dropping_ = false;
};

// The process: carries out what comes over the socket, to its end. For Writer alone.
void write_what_comes(int socket, const std::string& reserve, const std::string& here);

}  // namespace phalanx::logs
