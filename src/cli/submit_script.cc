#include "cli/submit_script.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

// What the script decides: with other values the run would not start, or start more than once.
struct Reserved {
  std::string_view name, instead;
};
constexpr std::array kReserved = {
    Reserved{"nodes", "write --nodes N"},
    Reserved{"job-name", "write --name NAME"},
    Reserved{"requeue", "write --requeue"},
    Reserved{"no-requeue", "leave it out: a job is requeued only with --requeue"},
    Reserved{"signal", "write --requeue, which sends SIGTERM to the ranks before the time limit"},
    Reserved{"open-mode", "leave it out: a requeued job appends to its output"},
    Reserved{"array", "submit the jobs one by one: each element would start a run of its own"},
    Reserved{"wrap", "give the command after --"},
    Reserved{"chdir", "go to that directory before you submit"},
};

base::Error refused(std::string message, std::string hint) {
  return base::fail(base::ErrorKind::kUsage, std::move(message)).with_hint(std::move(hint));
}

// One line of the script. sbatch splits it at blanks, and knows quotes, backslashes and comments (sbatch/opt.c, _get_argument).
base::Result<std::string> directive(const std::string& option) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals), value = equals == std::string::npos ? "" : option.substr(equals + 1);
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || name[0] == '-' || !std::all_of(name.begin(), name.end(), letter))
    return refused(fmt::format("--sbatch: {} is not an option of sbatch", base::quote(option)),
                   "write it without dashes in front: --sbatch time=24:00:00");
  for (const Reserved& reserved : kReserved)
    if (name == reserved.name)
      return refused(fmt::format("--sbatch: {} is set by phalanx", base::quote(option)), std::string(reserved.instead));
  auto unsafe = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\'' || c == '\\' || c == '#'; };
  if (std::any_of(value.begin(), value.end(), unsafe))
    return refused(fmt::format("--sbatch: {} has a character that sbatch reads as syntax", base::quote(option)),
                   "use `phalanx submit --dry-run` and edit the script");
  if (equals == std::string::npos) return "#SBATCH --" + name + "\n";
  const std::string_view quote = value.find(' ') == std::string::npos ? "" : "\"";
  return fmt::format("#SBATCH --{}={}{}{}\n", name, quote, value, quote);
}

constexpr std::string_view kRequeueing = R"(
# {warning} s before the time limit Slurm sends USR1 to this shell. The ranks get SIGTERM and {grace} s to write a checkpoint.
warned=
trap 'warned=yes; kill -TERM "$run"' USR1
trap : TERM
"$phalanx" {line} &
run=$!
wait "$run"
code=$?
while kill -0 "$run" 2> /dev/null; do
  wait "$run"
  code=$?
done
if [ -n "$warned" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
)";

}  // namespace

std::vector<std::string> run_line(const Submission& submission) {
  std::vector<std::string> words = submission.command;
  if (!words.empty() && words[0].substr(words[0].rfind('/') + 1) == "phalanx") words.erase(words.begin());
  else words.insert(words.begin(), {"run", "--"});
  const auto command = std::find(words.begin(), words.end(), "--");  // behind it stand the options of the ranks' program
  const bool given = std::any_of(words.begin(), command, [](const std::string& w) { return w == "--grace" || w.starts_with("--grace="); });
  if (submission.requeue && !given) words.insert(words.begin() + 1, {"--grace", fmt::format("{}s", kCheckpointSeconds)});
  return words;
}

base::Result<std::string> job_script(const Submission& submission) {
  if (!submission.volumes.empty()) return refused("--volume needs --image: it is for Kubernetes", "leave it out");
  std::string out = "#!/bin/bash\n";
  if (!submission.name.empty()) out += fmt::format("#SBATCH --job-name={}\n", submission.name);
  out += fmt::format("#SBATCH --nodes={}\n", submission.nodes);
  if (submission.gpus_per_node > 0) out += fmt::format("#SBATCH --gpus-per-node={}\n", submission.gpus_per_node);
  for (const std::string& option : submission.options) {
    TRY_ASSIGN(const std::string line, directive(option));
    out += line;
  }
  out += submission.requeue ? fmt::format("#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --signal=B:USR1@{}\n", kWarningSeconds)
                            : "#SBATCH --no-requeue\n";
  out += fmt::format("\ncd {} || exit\n", base::shell_quote(submission.directory));
  out += fmt::format("phalanx={}\nif ! [ -x \"$phalanx\" ]; then phalanx=phalanx; fi\n", base::shell_quote(submission.program));
  const std::string line = base::shell_quote(run_line(submission));
  if (!submission.requeue) return out + "exec \"$phalanx\" " + line + "\n";
  return out + fmt::format(fmt::runtime(kRequeueing), fmt::arg("warning", kWarningSeconds), fmt::arg("grace", kCheckpointSeconds),
                           fmt::arg("line", line));
}

}  // namespace phalanx::cli
