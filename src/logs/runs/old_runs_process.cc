#include "logs/runs/old_runs_process.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/try.h"
#include "os/apart.h"
#include "os/clock.h"

namespace phalanx::logs {

base::Result<std::unique_ptr<OldRunsProcess>> OldRunsProcess::start(os::Loop& loop, const std::string& base, const std::string& current,
                                                                    const Keeping& keeping, Heard heard) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return base::system_error("socketpair", "phalanx-clean");
  os::Fd ours(ends[0]), theirs(ends[1]);
  auto body = [&] {
    ::setpriority(PRIO_PROCESS, 0, 19);
    remove_old_runs(
        base, current, keeping, os::wall_now_ns(), [&](const std::string& id, const std::string& why, const std::string& problem) {
          const base::Json word = {{"run", id}, {"why", why}, {"problem", problem}};
          char go = 0;
          return os::write_all(theirs.get(), base::to_text(word) + "\n", "phalanx-clean").ok() && ::recv(theirs.get(), &go, 1, 0) == 1;
        });
  };
  TRY(os::fork_apart("phalanx-clean", {theirs.get()}, body));
  TRY(os::set_nonblocking(ours.get()));
  std::unique_ptr<OldRunsProcess> process(new OldRunsProcess(loop, std::move(ours), std::move(heard)));
  TRY_ASSIGN(process->watch_, loop.watch(process->socket_.get(), EPOLLIN, [p = process.get()](uint32_t) { p->hear(); }));
  return process;
}

OldRunsProcess::~OldRunsProcess() { close(); }

void OldRunsProcess::close() {
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  socket_.reset();
}

void OldRunsProcess::hear() {
  char buffer[4096];
  os::IoStep step = os::read_step(socket_.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return close();
  half_.append(buffer, step.bytes);
  for (size_t end; (end = half_.find('\n')) != std::string::npos; half_.erase(0, end + 1)) {
    base::Result<base::Json> word = base::parse_json(std::string_view(half_).substr(0, end));
    if (!word.ok() || !word->is_object()) continue;
    heard_(base::get_string(*word, "run").value_or(""), base::get_string(*word, "why").value_or(""),
           base::get_string(*word, "problem").value_or(""));
    (void)::send(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

}  // namespace phalanx::logs
