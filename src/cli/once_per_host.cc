// How: each host runs one rank, a shell that starts the command, prints its exit code behind a word that was drawn at random, and ends
// with 0. So one host's failure does not stop the others, as it would in a run, and codes above 128 stay what the shell makes of them.
#include "cli/once_per_host.h"

#include <sys/random.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/make_job.h"
#include "cli/quiet_watcher.h"
#include "cli/records/runs.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using words::tr;

constexpr std::string_view kBefore = "w=$1; shift; ";
constexpr std::string_view kAfter = "; printf '\\n%s %d\\n' \"$w\" $?";

base::Result<std::string> random_word() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) return base::system_error("getrandom", "16 bytes");
  std::string word = "phalanx-";
  for (unsigned char byte : bytes) word += fmt::format("{:02x}", byte);
  return word;
}

// What the ranks print, per rank.
class Collector : public QuietWatcher {
 public:
  Collector(base::Language language, size_t hosts) : QuietWatcher(language), texts_(hosts), cut_(hosts, false) {}
  void output(const job::State&, const wire::Output& output, int64_t) override {
    if (output.kind == wire::OutputKind::kProgress || output.rank >= texts_.size()) return;
    std::string& text = texts_[output.rank];
    text += output.data;
    if (text.size() <= kMostOutput) return;
    text.erase(0, text.size() - kMostOutput);  // the end tells more, and has the exit code
    cut_[output.rank] = true;
  }
  void note(const job::State& state, const job::Note& note) override {
    if (!std::holds_alternative<job::RunStarted>(note)) QuietWatcher::note(state, note);
  }
  std::string& text(size_t host) { return texts_[host]; }
  bool cut(size_t host) const { return cut_[host]; }

 private:
  std::vector<std::string> texts_;
  std::vector<bool> cut_;
};

// Takes "\n<word> 0\n" out of the output.
std::optional<int> take_exit_code(std::string& text, const std::string& word) {
  const size_t at = text.rfind("\n" + word + " ");
  const size_t begin = at == std::string::npos && text.starts_with(word + " ") ? 0 : at;  // the first line was dropped, or is this one
  if (begin == std::string::npos) return std::nullopt;
  const size_t number = begin + (at == std::string::npos ? 0 : 1) + word.size() + 1;
  const size_t end = std::min(text.find('\n', number), text.size());
  base::Result<int64_t> code = base::parse_int(text.substr(number, end - number), 0, 255);
  text.erase(begin, std::min(end + 1, text.size()) - begin);
  return code.ok() ? std::optional<int>(static_cast<int>(*code)) : std::nullopt;
}

}  // namespace

base::Result<OnceAnswers> run_once_per_host(RunOptions options, std::vector<std::string> command, bool by_agent) {
  TRY_ASSIGN(const std::string word, random_word());
  std::vector<std::string> argv = {"/bin/sh", "-c",
                                   fmt::format("{}{}{}", kBefore, by_agent ? "\"/proc/$PPID/exe\" \"$@\"" : "\"$@\"", kAfter), "sh", word};
  argv.insert(argv.end(), command.begin(), command.end());
  options.command = std::move(argv);
  options.ranks_per_host = RanksPerHost{RanksPerHost::Kind::kCount, 1};
  options.preflight = job::Preflight::kOff;
  options.no_store = true;
  TRY_ASSIGN(job::Job job, make_job(options, detect_terminal()));
  job.run_id = word;
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  OnceAnswers answers;
  Collector collector(language_here(), job.hosts.size());
  job::Runner runner(*loop, collector);
  if (options.timeout)
    loop->after(*options.timeout, [&] {
      answers.timed_out = true;
      runner.stop(std::nullopt, false);
    });
  TRY_ASSIGN(const job::Verdict verdict, run_on_hosts(runner, std::move(job), options));
  answers.errors = job::explain(runner.state(), verdict, "", "", language_here());
  if (answers.timed_out) answers.errors.clear();
  if (!runner.state().plan || runner.state().ranks.empty()) return answers;
  for (size_t h = 0; h < runner.state().plan->hosts.size(); ++h) {
    HostAnswer answer{runner.state().plan->hosts[h].name, std::move(collector.text(h)), collector.cut(h), std::nullopt};
    answer.exit_code = take_exit_code(answer.output, word);
    answers.hosts.push_back(std::move(answer));
  }
  return answers;
}

std::string folded_answers(const std::vector<HostAnswer>& hosts, base::Language language) {
  std::vector<std::pair<const HostAnswer*, std::vector<std::string>>> groups;
  for (const HostAnswer& host : hosts) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.first->output == host.output && group.first->exit_code == host.exit_code;
    });
    if (same == groups.end()) groups.push_back({&host, {host.host}});
    else same->second.push_back(host.host);
  }
  std::string out;
  for (const auto& [answer, names] : groups) {
    std::string end;
    if (!answer->exit_code) end = tr(language, ": stopped before it ended");
    else if (*answer->exit_code != 0) end = tr(language, ": exit code {}", *answer->exit_code);
    out += base::join(base::fold_names(names), ",") + end + "\n";
    if (answer->cut) out += tr(language, "  [phalanx: the beginning of the output is omitted]\n");
    for (std::string_view line : base::split_lines(answer->output)) out += "  " + std::string(line) + "\n";
  }
  return base::printable_lines(out);
}

int exit_code_of(const std::vector<HostAnswer>& hosts) {
  for (const HostAnswer& host : hosts)
    if (host.exit_code != 0) return host.exit_code.value_or(base::exit_code(base::ErrorKind::kInterrupted));
  return 0;
}

}  // namespace phalanx::cli
