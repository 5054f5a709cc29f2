// The folder of one run, its log and its record:
//
//   <state>/phalanx/runs/<id>/      $XDG_STATE_HOME or ~/.local/state; or <log-dir>/<id>/
//     run.json                      what was asked and how it ended; replaced as a whole
//     reserve                       room for that on a full disk; removed at the end
//     events.jsonl                  one JSON object per line, appended: {"v":1,"t":"2026-11-21T07:31:02.123Z","event":"…", …}
//     ranks/<rank>.log              logs/runs/rank_log.h
//   <state>/phalanx/runs/latest     link to the newest <id>
//
// Folders are 0700 and files 0600. The id is local time, 256ths of a second and a random byte, 20261121-073102-a3f9.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "logs/runs/files.h"
#include "os/fd.h"

namespace phalanx::logs {

class RunDirectory {
 public:
  // Where runs lie: `log_dir` if not empty, else from $XDG_STATE_HOME and $HOME. Error kConfig when neither is set.
  static base::Result<std::string> base_folder(const std::string& log_dir);
  static constexpr int64_t kReserveBytes = 64 << 10;

  // Makes a new run in `base`; two launchers that do so at once get different ids. wall_ns: when the run began. This is the only part
  // that waits for the disk: at that time nothing runs that could be harmed by it. Error kConfig: it cannot be made, or there is no room
  // for the record of its end; nothing is left of it then.
  static base::Result<RunDirectory> create(const std::string& base, int64_t wall_ns);
  RunDirectory(RunDirectory&&) = default;

  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }
  std::string rank_log_path(int rank) const;
  std::string reserve_path() const { return path_ + "/reserve"; }
  // The lock that says that this run lives (logs/runs/run_list.h): held as long as this descriptor, or a copy of it, is open.
  os::Fd take_lock() { return std::move(lock_); }
  // The folder itself, whatever its name leads to by now.
  os::Fd take_folder() { return std::move(folder_); }

  // Where record and events are written. To be called before the two below; outlives this.
  void write_to(Files& files);
  // run.json: the old content or the new one, never half of one.
  void write_record(const base::Json& record) const;
  // Appends one event; `fields` is an object, its "v", "t" and "event" are ours.
  void event(int64_t wall_ns, const std::string& name, const base::Json& fields);

 private:
  RunDirectory(std::string id, std::string path, os::Fd folder, os::Fd lock)
      : id_(std::move(id)), path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::string id_;
  std::string path_;
  os::Fd folder_, lock_;
  Files* files_ = nullptr;
  FileId events_ = 0;
};

}  // namespace phalanx::logs
