// How phalanx-guard ends when it, and not the agent, has ended the ranks of a host: its exit code. The transport passes an exit code on, so
// that the launcher reads the cause as a number. The text that the guard writes to stderr is for people.
#pragma once

#include <sys/wait.h>

#include <cstdint>
#include <optional>

namespace phalanx::wire {

// Codes that neither an agent (base::exit_code, 128 + signal) nor a shell (126, 127, 128 + signal) nor ssh (255) exits with.
enum class GuardEnd : uint8_t {
  kAgentKilled = 111,  // the agent was killed by a signal
  kLeaseOver = 112,    // the agent did not run for the length of its lease
  kCannotWatch = 113,  // the guard could not watch its agent
};

// status: as from waitpid, of the program that was the transport's. Nothing for every other end.
inline std::optional<GuardEnd> guard_end(int status) {
  if (!WIFEXITED(status)) return std::nullopt;
  switch (GuardEnd end = static_cast<GuardEnd>(WEXITSTATUS(status)); end) {
    case GuardEnd::kAgentKilled:
    case GuardEnd::kLeaseOver:
    case GuardEnd::kCannotWatch: return end;
  }
  return std::nullopt;
}

}  // namespace phalanx::wire
