// init: a first project file, of the options that are given.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/flags/run_options.h"
#include "cli/flags/verbs.h"
#include "cli/front_door.h"
#include "cli/project/find_project.h"
#include "cli/project/project_file.h"
#include "cli/project/write_project.h"
#include "cli/records/runs.h"
#include "logs/redact.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

// Never over a file that is there, whatever it is.
base::Status make_file(const std::string& path, const std::string& text) {
  os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid() && errno == EEXIST)
    return base::fail(base::ErrorKind::kUsage, fmt::format("{} exists already", path))
        .with_hint("edit it, and print what is in effect: phalanx config show --origin");
  if (!file.valid()) {
    base::Error error = base::system_error("open", path);
    error.kind = base::ErrorKind::kConfig;
    return error;
  }
  for (size_t written = 0; written < text.size();) {
    const ssize_t more = ::write(file.get(), text.data() + written, text.size() - written);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      base::Error error = base::system_error("write", path);
      error.kind = base::ErrorKind::kConfig;
      ::unlink(path.c_str());
      return error;
    }
    written += static_cast<size_t>(more);
  }
  return base::ok();
}

// The options of the translated line, but for those that were typed.
base::Status add_translated(const FrontDoor& door, Invocation& invocation) {
  TRY_ASSIGN(const Invocation translated, parse_command_line(door.args));
  std::vector<GivenFlag> added;
  for (const GivenFlag& given : translated.flags)
    if (given.row->repeatable || !invocation.has(given.row->flag)) added.push_back(given);
  invocation.flags.insert(invocation.flags.begin(), added.begin(), added.end());  // of a variable given twice, the typed one counts
  return run_options(invocation).ok() ? base::ok() : base::Status(run_options(invocation).error());
}

// A project file holds no command: it stands above the options, to be typed.
std::string command_comment(const FrontDoor& door) {
  const std::string command = logs::redact(base::printable(base::shell_quote(door.translation.argv), 4096));
  return "# phalanx run -- " + command + "\n";
}

}  // namespace

base::Result<int> init_verb(const Invocation& invocation) {
  TRY(run_options(invocation));
  const base::Language language = language_here();
  Invocation all = invocation;
  std::optional<FrontDoor> door;
  if (std::optional<std::string> from = invocation.value(Flag::kFrom)) {
    TRY_ASSIGN(door, translate_text(*from));
    TRY(add_translated(*door, all));
  }
  WrittenProject project = project_text(all, language);
  if (door) project.text = command_comment(*door) + project.text;
  const std::string folder = os::current_folder();
  if (folder.empty())
    return base::fail(base::ErrorKind::kUsage, "the current directory does not exist any more").with_hint("cd to another one");
  const std::string path = (folder == "/" ? "" : folder) + "/" + kProjectFileName;
  TRY(parse_project_file(project.text, path));  // what a run would refuse is not written
  TRY(make_file(path, project.text));
  if (door) show(*door, all);
  std::fputs(words::tr(language, "phalanx: wrote {}\n", path).c_str(), stderr);
  if (!project.secrets.empty())
    std::fputs(words::tr(language, "phalanx: {}: a secret; its value is not in the file and comes from the environment\n",
                         base::join(project.secrets, ", "))
                   .c_str(),
               stderr);
  if (auto usable = find_project(folder, folder); !usable.ok()) warn_of(usable.error());
  return 0;
}

}  // namespace phalanx::cli
