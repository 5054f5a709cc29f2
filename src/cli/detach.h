// A run that goes on without its terminal: `run -d`.
//
// The launcher forks before it has opened anything. The child leads a session of its own, so neither the end of the terminal nor that
// of the ssh session reaches it; it does everything a launcher does and speaks to the terminal until its ranks have started. Then it
// leaves the terminal and says so over a pipe. The parent waits for that word: it then prints the id and what to type next, and exits
// with 0. A child that ends without the word has said why, and its exit code is ours. Signals to the parent go on to the child.
#pragma once

#include <optional>
#include <string>

#include "base/language.h"
#include "base/result.h"
#include "os/fd.h"
#include "os/relay.h"

namespace phalanx::cli {

struct Detached {
  std::optional<int> exit_code;  // in the parent: all is done
  os::Fd word;                   // in the child: for say_ready
};
// Only for a process of one thread that holds no loop and no connection. quiet: only the id is printed.
base::Result<Detached> part(bool quiet, base::Language language);

// Standard input and output become /dev/null, standard error the end of this file (0600), which is written without waiting for its disk.
base::Result<os::Relay> leave_terminal(const std::string& log);
void say_ready(os::Fd word, const std::string& run_id);

}  // namespace phalanx::cli
