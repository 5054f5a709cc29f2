// Where the files of a run are written. Two places do that: DiskFiles at once, and Writer (logs/runs/writer.h), which never waits, by a
// process that uses a DiskFiles.
//
// Nothing here fails: what a disk does not take is dropped and counted, a mark says in the file how much is missing where, and the owner
// hears of it once per file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace phalanx::logs {

using FileId = uint32_t;  // of one Files

// Called with one sentence for people.
using Warn = std::function<void(const std::string&)>;

// What stands in a log, and so how a mark in it looks. When there is no room for everything, text is dropped first: records are little.
enum class Form : uint8_t {
  kText,       // what a rank prints: "[phalanx: 12 KiB of this log were lost here: No space left on device]"; has times (TimeMark)
  kJsonLines,  // events, progress: {"v":1,"event":"lost","bytes":12288,"why":"…"}
};

// When a byte of appended text was printed. They are kept beside the log, in path "<rank>.times" for "<rank>.log" (log_times.h).
struct TimeMark {
  uint64_t at = 0;  // offset in the appended bytes; in a file of times: in the log
  int64_t ms = 0;   // since 1970
};

class Files {
 public:
  virtual ~Files() = default;
  // A file that is appended to, created (0600) by the first append. most_bytes: of the file and the one before it, path + ".1", together:
  // a file of half of it becomes that one, at the end of a line, and a mark at the beginning of the next file says so. 0: no bound.
  virtual FileId log(const std::string& path, Form form, uint64_t most_bytes) = 0;
  void append(FileId log, std::string_view bytes) { append_timed(log, bytes, {}); }
  // times: in the order of their offsets.
  virtual void append_timed(FileId log, std::string_view bytes, std::span<const TimeMark> times) = 0;
  // The whole content, synced: the old one or the new one, never half of one. Makes the folder it lies in. In order with what is appended.
  virtual void replace(const std::string& path, std::string_view content) = 0;
  virtual void remove(const std::string& path) = 0;
};

}  // namespace phalanx::logs
