// The files of a run, written at once (logs/runs/files.h).
//
// A log stays open from its first append. A write that fails, or comes back short, loses what it did not write; every later append first
// tries to put the mark that says so, and is lost as well if that fails.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "logs/runs/files.h"
#include "os/fd.h"

namespace phalanx::logs {

class DiskFiles : public Files {
 public:
  // warn: may be empty. reserve: a file of some size that may be removed when the disk is full, so that a file can be replaced all the
  // same; empty: none. here: the path of the working directory, or empty. Files below it are then found from where the process stands,
  // also when somebody has given the path to another folder.
  explicit DiskFiles(Warn warn, std::string reserve = "", std::string here = "")
      : warn_(std::move(warn)), reserve_(std::move(reserve)), here_(std::move(here)) {}

  FileId log(const std::string& path, Form form, uint64_t most_bytes) override;
  void append_timed(FileId log, std::string_view bytes, std::span<const TimeMark> times) override;
  void replace(const std::string& path, std::string_view content) override;
  void remove(const std::string& path) override;

  // Bytes of the log that never came here: the next append marks them. They do not count in lost_bytes().
  void missing(FileId log, uint64_t bytes, const std::string& why);
  // Puts the marks that are still due, as far as the disk takes them.
  void mark();

  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  struct Log {
    std::string path;
    Form form = Form::kText;
    uint64_t most = 0;  // bytes, of this file and the one before it; 0: no bound
    uint64_t size = 0;  // of the file, while it is open
    uint64_t removed = 0;
    os::Fd fd;
    os::Fd times;  // as long as fd
    uint64_t times_size = 0;
    uint64_t unmarked = 0;   // lost bytes that no mark in the log tells of yet
    std::string why;         // they were lost
    bool line_open = false;  // the file ends in half a line
    bool warned = false;
  };
  bool open(Log& log);
  bool put_mark(Log& log);
  void turn(Log& log);
  void put_times(Log& log, uint64_t gone, std::span<const TimeMark> times);  // gone: bytes before log.size that the offsets count
  void failed(Log& log, const std::string& why, size_t bytes);
  void close_all();
  std::string at(const std::string& path) const;  // what the kernel is given

  Warn warn_;
  std::string reserve_, here_;
  std::vector<Log> logs_;
  uint64_t lost_bytes_ = 0;
};

}  // namespace phalanx::logs
