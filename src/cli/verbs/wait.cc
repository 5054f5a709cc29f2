// wait: until runs have ended. Their records are looked at, so it works from another machine or container too.
#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/flag_value.h"
#include "cli/flags/verbs.h"
#include "cli/records/named_run.h"
#include "cli/records/runs.h"
#include "os/loop.h"

namespace phalanx::cli {
namespace {

constexpr os::milliseconds kLook{200};

bool goes_on(const logs::Run& run) { return run.life != logs::Life::kEnded && run.life != logs::Life::kLost; }

base::Error not_ended(const logs::Run& run, os::milliseconds most) {
  return base::fail(base::ErrorKind::kTimeout, fmt::format("the run {} has not ended within {}", run.id, base::format_duration(most)))
      .with_hint("phalanx why " + run.id);
}

}  // namespace

base::Result<int> wait_verb(const Invocation& invocation) {
  TRY_ASSIGN(const std::string folder, runs_folder(invocation));
  std::vector<logs::Run> runs;
  for (const std::string& word : invocation.operands.empty() ? std::vector<std::string>{""} : invocation.operands) {
    TRY_ASSIGN(logs::Run run, find_named_run(folder, word));
    if (run.unreadable) return *run.unreadable;
    runs.push_back(std::move(run));
  }
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  auto all_over = [&] {
    for (logs::Run& run : runs) {
      if (!goes_on(run)) continue;
      run = logs::look_at_run(run.path, run.id);
      if (goes_on(run)) return false;
    }
    return true;
  };
  if (!all_over()) {
    loop->every(kLook, [&] {
      if (all_over()) loop->stop();
    });
    if (auto most = invocation.value(Flag::kTimeout)) loop->after(duration_value(*most), [&] { loop->stop(); });
    loop->run();
  }
  int code = 0;
  for (const logs::Run& run : runs) {
    if (goes_on(run)) return not_ended(run, duration_value(*invocation.value(Flag::kTimeout)));
    const bool lost = run.life == logs::Life::kLost;
    const int own =
        lost ? base::exit_code(base::ErrorKind::kUnreachable) : static_cast<int>(base::get_int(run.record, "exit_code").value_or(70));
    const std::string line = fmt::format("{}  {}  {}\n", run.id, state_word(state_of(run, nullptr)).in(language_here()), own);
    std::fputs(base::printable_lines(line).c_str(), stdout);
    if (code == 0) code = own & 255;
  }
  return code;
}

}  // namespace phalanx::cli
