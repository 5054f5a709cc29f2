// A process started inside a host, seen from outside it: its output as it comes, its end, its time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::testbed {

using std::chrono::milliseconds;
using Instant = std::chrono::steady_clock::time_point;

struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env = {};  // on top of a login's plain PATH, HOME, USER, LOGNAME, SHELL, LANG
  std::string cwd = {};                         // empty: the home folder
  std::string input = {};                       // what stdin gives
  bool hold_stdin = false;                      // stdin stays open after the input, for type()
  // kPipes: stdin, stdout and stderr apart, in a session of its own. kTerminal: one terminal, 100 columns, whose output is out().
  // kInherit: this process's own three.
  enum Stdio { kPipes, kTerminal, kInherit } stdio = kPipes;
  std::string user = {};  // empty: root; or one of testbed::kUsers
};

struct Outcome {
  bool ended = false;  // false: killed by the testbed at the deadline, or never started
  int exit_code = 0;   // as a shell would say it: 128 + signal
  int signal = 0;      // that ended it, or 0
  std::string out, err;
  milliseconds took{0};
};
std::ostream& operator<<(std::ostream& stream, const Outcome& outcome);  // for gtest's messages

// Output is read only inside the wait functions; a process that fills its pipe in between blocks, as behind a slow reader.
// The destructor kills the process's group.
class Process {
 public:
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }  // also its process group and session, except with kInherit
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

  bool wait(milliseconds most);                                // true: it has ended, and what it had written has been read
  bool wait_output(std::string_view text, milliseconds most);  // true: out or err contains the text
  Outcome finish(milliseconds most);                           // wait, and kill at the deadline
  void signal(int signal_number) const;
  void signal_group(int signal_number) const;  // what Ctrl-C does: to its whole process group
  void type(std::string_view text);            // to its terminal or held stdin
  void hang_up();                              // closes its terminal, as a window that is closed: the kernel sends SIGHUP

 private:
  friend base::Result<Process> start_process(pid_t init, const std::string& cgroup, Command command);
  Process() = default;
  bool pump(milliseconds most);  // one poll; true: something happened
  void read_all(os::Fd& fd, std::string& into);
  void write_input();
  void reap();

  pid_t pid_ = -1;
  bool ended_ = false, group_ = false, hold_stdin_ = false;
  int status_ = 0;
  Instant began_{}, ended_at_{};
  os::Fd handle_, stdin_, stdout_, stderr_;  // handle_: a pidfd
  std::string input_, out_, err_;
};

// In the namespaces of `init` (the pid 1 of a host) and in its cgroup.
base::Result<Process> start_process(pid_t init, const std::string& cgroup, Command command);

}  // namespace phalanx::testbed
