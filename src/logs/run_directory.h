// The folder of one run, its log and its record:
//
//   <state>/phalanx/runs/<id>/      $XDG_STATE_HOME or ~/.local/state; or <log-dir>/<id>/
//     run.json                      what was asked and how it ended; replaced as a whole
//     events.jsonl                  one JSON object per line, appended: {"v":1,"t":"2026-11-21T07:31:02.123Z","event":"…", …}
//     ranks/<rank>.log              logs/rank_log.h
//   <state>/phalanx/runs/latest     link to the newest <id>
//
// Folders are 0700 and files 0600. The id is local time and four random hex digits, 20261121-073102-a3f9.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "logs/rank_log.h"
#include "os/fd.h"

namespace logs {

class RunDirectory {
 public:
  // Where runs lie: `log_dir` if not empty, else from $XDG_STATE_HOME and $HOME. Error kConfig when neither is set.
  static base::Result<std::string> base_folder(const std::string& log_dir);
  // Makes a new run in `base`; two launchers that do so at once get different ids. wall_ns: when the run began.
  static base::Result<RunDirectory> create(const std::string& base, int64_t wall_ns, Warn warn);
  RunDirectory(RunDirectory&&) = default;

  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }
  std::string rank_log_path(int rank) const;

  // run.json: the old content or the new one, never half of one.
  base::Status write_record(const base::Json& record) const;
  // Appends one event; `fields` is an object, its "v", "t" and "event" are ours. A failure is told once through `warn`;
  // what is torn by it stands on a line of its own.
  void event(int64_t wall_ns, const std::string& name, const base::Json& fields);

 private:
  RunDirectory(std::string id, std::string path, os::Fd events, Warn warn)
      : id_(std::move(id)), path_(std::move(path)), events_(std::move(events)), warn_(std::move(warn)) {}
  std::string id_;
  std::string path_;
  os::Fd events_;
  Warn warn_;
  bool torn_ = false;  // the last line may be half a line
  bool warned_ = false;
};

}  // namespace logs
