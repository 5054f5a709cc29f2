#include "hosts/connect/container_end.h"

#include <sys/wait.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;
using Kind = Container::Kind;

constexpr std::string_view kMark = "PHALANX-CONTAINER ";
constexpr size_t kMostNames = 12;

struct Word {
  std::string kind, rest;
};

// The first of our lines counts; `said` gets all others: what the engine printed.
std::optional<Word> read_mark(const std::string& text, std::string& said) {
  std::optional<Word> word;
  for (std::string_view line : base::split_lines(text)) {
    if (!line.starts_with(kMark)) {
      if (!base::trim(line).empty()) said += (said.empty() ? "" : "\n          ") + std::string(base::trim(line));
      continue;
    }
    line.remove_prefix(kMark.size());
    const size_t blank = std::min(line.find(' '), line.size());
    if (!word) word = Word{std::string(line.substr(0, blank)), std::string(base::trim(line.substr(blank)))};
  }
  return word;
}

// "a, b": what the host says there is.
std::string names_there(const std::string& rest) {
  std::vector<std::string> names;
  for (std::string_view name : base::split(rest, ' '))
    if (!name.empty() && names.size() < kMostNames) names.push_back(base::printable(name, 100));
  return base::join(names, ", ");
}

struct Speech {
  const Target& target;
  const Container& container;
  Target host;  // the host itself, outside of the container
  std::string said;
  std::string engine = container.engine();

  base::Error fail(std::string message, std::string why, const std::string& command) const {
    base::Error error = base::fail(ErrorKind::kUnreachable, std::move(message)).because(std::move(why));
    error.hint = command.empty() ? "" : typed(host, command);
    return error;
  }
  base::Error absent(const std::string& rest) const {
    const std::string there = names_there(rest);
    if (container.kind == Kind::kApptainer)
      return fail(fmt::format("{}: file not found: {}", target.name, container.what), said, "ls -ld " + base::shell_quote(container.what));
    if (container.made_for_run())
      return fail(fmt::format("{}: {} has no image {}", target.name, engine, container.what),
                  there.empty() ? "it has no images" : fmt::format("its images: {}", there), engine + " pull " + container.what);
    return fail(fmt::format("{}: {} has no container {}", target.name, engine, container.what),
                there.empty() ? "no container runs there" : fmt::format("running containers: {}", there), engine + " ps --all");
  }
  base::Error state(const std::string& status, bool started) const {
    const std::string now = base::printable(status, 60), command = engine + (status == "paused" ? " unpause " : " start ") + container.what;
    return fail(started ? fmt::format("{}: the container {} has stopped (state: {})", target.name, container.what, now)
                        : fmt::format("{}: the container {} is not running (state: {})", target.name, container.what, now),
                said, command);
  }
};

}  // namespace

std::string without_marks(const std::string& stderr_text) {
  std::string out;
  for (std::string_view line : base::split_lines(stderr_text))
    if (!line.starts_with(kMark)) out.append(line).append("\n");
  return out;
}

std::optional<base::Error> explain_container(const Target& target, const Death& death, bool started) {
  if (!target.container) return std::nullopt;
  std::string said;
  const std::optional<Word> word = read_mark(death.stderr_text, said);
  if (!word) return std::nullopt;
  Speech speech{target, target.container, target, base::printable_lines(said)};
  speech.host.container = {};
  const bool runs = word->kind == "state" && (word->rest == "running" || word->rest == "present");
  if (word->kind == "state" && !runs) return speech.state(word->rest, started);
  if (started && (runs || word->kind == "command" || target.container.made_for_run())) return std::nullopt;
  if (word->kind == "engine")
    return speech.fail(fmt::format("{}: {} is not installed, or not in the PATH of the login", target.name, speech.engine), speech.said,
                       "command -v " + speech.engine);
  if (word->kind == "absent") return speech.absent(word->rest);
  if (word->kind == "silent")
    return speech.fail(fmt::format("{}: {} does not answer", target.name, speech.engine), speech.said, speech.engine + " ps");
  const int code = WIFEXITED(death.status) ? WEXITSTATUS(death.status) : 128 + WTERMSIG(death.status);
  base::Error error = speech.fail(fmt::format("{}: the agent could not be started in {} (exit code {})", target.name,
                                              base::printable(to_text(target.container), 200), code),
                                  speech.said, "");
  if (runs && !target.container.made_for_run()) error.hint = typed(target, "true");
  return error;
}

}  // namespace phalanx::hosts
