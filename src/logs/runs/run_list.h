// The runs that lie in a folder of runs (logs/runs/run_directory.h), and whether their launcher lives.
//
// run.json says which process the launcher is (os/process_mark.h): on its own machine, in its own container, a run without a verdict whose
// launcher does not live is lost. Seen from elsewhere the lock that phalanx-logs holds on events.jsonl says that the run goes on; where it
// is free, or the file system has none, only the other machine can tell.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "os/process_mark.h"

namespace phalanx::logs {

enum class Life {
  kAlive,      // its launcher is here and lives
  kEnded,      // run.json has the verdict
  kLost,       // the launcher died without a word
  kElsewhere,  // begun on another machine, or another user's and unreadable: whether it lives cannot be seen from here
  kUnknown,    // its folder or its run.json cannot be read: `unreadable` says why
};

struct Run {
  std::string id;
  std::string path;
  base::Json record = base::Json::object();  // run.json; empty where it cannot be read
  Life life = Life::kLost;
  std::string launcher_host;  // of kElsewhere; empty where nothing can be read
  // The folder and run.json are real, owned by this user or by root, and nobody else can write to them. Anyone can lay a run into a shared
  // folder: what such a record says may be shown, but nothing may be done because of it.
  bool ours = false;
  uid_t owner = 0;                             // of the folder
  std::optional<base::Error> unreadable = {};  // of kUnknown, and of a locked one: names the path, and says what to do
};

inline constexpr size_t kMaxRecordBytes = 64 << 20;

// Newest first. A folder that does not exist has none. Error kConfig: the folder cannot be read.
base::Result<std::vector<Run>> list_runs(const std::string& base);
// word: an id, the beginning or the last four characters of one, "latest" or "" (the newest). Error kUsage: there is none such, or
// more than one; kConfig: the folder, or the run that was found, cannot be read.
base::Result<Run> find_run(const std::string& base, std::string_view word);
// Error kConfig: the run is not ours, so its record must not decide what is done.
base::Status must_be_ours(const Run& run);
// Writes run.json anew, as `change` makes it. The folder is opened again and everything goes by its descriptor. Error kConfig: it is not
// ours any more, or another run's record lies there now.
base::Status rewrite_record(const Run& run, const std::function<void(base::Json&)>& change);
// An error of a system call, as one of kConfig with something to do.
base::Error cannot_read(base::Error error, const std::string& what, const std::string& path);
// Looks again.
Run look_at_run(const std::string& path, const std::string& id);

// An id as run_directory makes them. Nothing else is ever made a path of.
bool is_run_id(std::string_view text);
// "launcher" of run.json, and back; what is missing there is empty or 0.
base::Json describe_mark(const os::ProcessMark& mark);
os::ProcessMark mark_of(const base::Json& launcher);
// This machine, as run.json names it.
std::string this_machine();

}  // namespace phalanx::logs
