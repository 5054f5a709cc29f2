// env push, env verify and env diff on hosts. A push: phalanx-env makes the list of the environment as it will be at its new place
// (envmove/carry/carry.h), the list is pushed like a directory, and phalanx-env, sent along, verifies it on each host.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/push/env_program.h"
#include "cli/push/progress.h"
#include "cli/push/push_hosts.h"
#include "cli/records/runs.h"
#include "os/clock.h"
#include "os/files.h"
#include "sync/prepared.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;
using words::tr;

constexpr size_t kMostAnswer = sync::kMostManifestBytes + (64 << 20);
constexpr int kAside = 3, kAnswer = 4;  // as envcli/verbs.h has them

void put(std::FILE* to, const std::string& text) { std::fwrite(text.data(), 1, text.size(), to); }

// A path is the same one on the hosts, which know nothing of the directory that this is typed in.
std::string name_of(const Invocation& invocation) {
  const std::string name = invocation.operands.size() > 1 ? invocation.operands[1] : "";
  const bool path = name.find('/') != std::string::npos || (!name.empty() && os::is_folder(name));
  return path && !name.starts_with('/') ? os::current_folder() + "/" + name : name;
}

struct Environment {
  sync::Prepared list;
  sync::Aside aside;
};

// code: of phalanx-env, which has said why it is not 0.
base::Result<int> prepare(const std::string& name, const std::string& to, Environment& out) {
  TRY_ASSIGN(out.aside.file, nameless_file());
  TRY_ASSIGN(const os::Fd answer, nameless_file());
  std::vector<std::string> arguments;
  if (!to.empty()) arguments.push_back("--to=" + to);
  for (const char* word : {"--", "prepare"}) arguments.emplace_back(word);
  arguments.push_back(name);
  TRY_ASSIGN(const int code, run_env_program(std::move(arguments), {{out.aside.file.get(), kAside}, {answer.get(), kAnswer}}));
  if (code != 0) return code;
  if (::lseek(answer.get(), 0, SEEK_SET) != 0) return base::system_error("lseek", "the answer of phalanx-env");
  TRY_ASSIGN(const std::string bytes, os::read_rest(answer, "the answer of phalanx-env", kMostAnswer));
  TRY_ASSIGN(out.list, sync::decode_prepared(bytes));
  out.aside.at = std::move(out.list.aside);
  return 0;
}

// Hosts that have it; the others have an error that is said already.
RunOptions narrowed(RunOptions options, const std::vector<job::CopiedHost>& hosts, std::vector<hosts::Target>& targets) {
  std::vector<std::string> names;
  for (const job::CopiedHost& host : hosts)
    if (!host.error) names.push_back(host.name);
  if (names.size() == hosts.size()) return options;
  std::erase_if(targets, [&](const hosts::Target& target) { return std::find(names.begin(), names.end(), target.name) == names.end(); });
  options.include = base::join(names, "@");
  options.exclude.clear();
  return options;
}

int report_answers(const OnceAnswers& answers, base::Language language) {
  for (const base::Error& error : answers.errors) put(stderr, words::render(error, language));
  put(stdout, folded_answers(answers.hosts, language));
  return answers.errors.empty() ? exit_code_of(answers.hosts) : base::exit_code(answers.errors.front().kind);
}

// What phalanx-env printed in JSON on each host; what is none, as text.
base::Json outputs(const OnceAnswers& answers) {
  base::Json list = base::Json::array();
  for (const HostAnswer& answer : answers.hosts) {
    base::Result<base::Json> json = base::parse_json(answer.output, kMostOutput);
    base::Json& one = list.emplace_back();
    one["host"] = answer.host;
    one["output"] = json.ok() ? std::move(*json) : base::Json(answer.output);
  }
  base::Json all;
  all["schema"] = 1;
  all["hosts"] = std::move(list);
  return all;
}

base::Result<int> push(const std::string& name, const RunOptions& options, bool among_others, base::Language language) {
  TRY_ASSIGN(std::vector<hosts::Target> targets,
             targets_of(options, "env push needs hosts", fmt::format("phalanx env push {} <host>,<host>", base::shell_quote(name))));
  Environment environment;
  TRY_ASSIGN(int code, prepare(name, options.push_to, environment));
  if (code != 0) return code;
  const sync::Manifest& manifest = environment.list.manifest;
  PushProgress progress(language, ::isatty(STDERR_FILENO) == 1, options.quiet);
  job::CopyRequest request{"environment", environment.list.root, &manifest};
  request.progress = [&](const std::vector<job::CopyState>& hosts) { progress.sent(hosts, os::mono_now()); };
  request.target = {environment.list.to, environment.list.mode, true, among_others};
  request.aside = &environment.aside;
  TRY_ASSIGN(const std::vector<job::CopiedHost> hosts, copy_to_hosts(targets, options, std::move(request)));
  progress.clear();
  if (!options.json) put(stdout, base::printable_lines(push_table(hosts, language)));
  const std::vector<base::Error> errors = folded_errors(hosts);
  for (const base::Error& error : errors) put(stderr, words::render(error, language));
  if (!errors.empty()) code = base::exit_code(errors.front().kind);
  base::Json verified = base::Json::object();
  const RunOptions good = narrowed(options, hosts, targets);
  if (!targets.empty()) {
    std::vector<std::string> arguments = {"--no-hashes", "--", "verify", environment.list.to};
    if (options.json) arguments.insert(arguments.begin(), "--json");
    TRY_ASSIGN(const OnceAnswers answers, run_env_program_on_hosts(targets, good, arguments));
    const int found = options.json ? exit_code_of(answers.hosts) : report_answers(answers, language);
    if (code == 0) code = answers.errors.empty() ? found : base::exit_code(answers.errors.front().kind);
    if (options.json) verified = outputs(answers);
  }
  if (!options.json) return code;
  base::Json report = push_json(environment.list.root, manifest, hosts);
  for (base::Json& one : report["hosts"])
    for (base::Json& answer : verified["hosts"])
      if (one["host"] == answer["host"]) one["verified"] = std::move(answer["output"]);
  put(stdout, base::to_text(report, 2) + "\n");
  return code;
}

base::Result<int> verify(const std::string& name, const RunOptions& options, base::Language language) {
  TRY_ASSIGN(const std::vector<hosts::Target> targets,
             targets_of(options, "env verify needs hosts", fmt::format("phalanx env verify {} -H <host>,<host>", base::shell_quote(name))));
  std::vector<std::string> arguments = {"--", "verify", name};
  if (options.json) arguments.insert(arguments.begin(), "--json");
  TRY_ASSIGN(const OnceAnswers answers, run_env_program_on_hosts(targets, options, arguments));
  if (!options.json || !answers.errors.empty()) return report_answers(answers, language);
  put(stdout, base::to_text(outputs(answers), 2) + "\n");
  return exit_code_of(answers.hosts);
}

base::Result<int> diff(const std::string& name, const RunOptions& options, base::Language language) {
  TRY_ASSIGN(const std::vector<hosts::Target> targets,
             targets_of(options, "env diff needs hosts", fmt::format("phalanx env diff {} <host>,<host>", base::shell_quote(name))));
  TRY_ASSIGN(const OnceAnswers answers, run_env_program_on_hosts(targets, options, {"--json", "--", "show", name}));
  if (!answers.errors.empty()) return report_answers(answers, language);
  TRY_ASSIGN(const os::Fd input, nameless_file());
  TRY(os::write_all(input.get(), base::to_text(outputs(answers)), "what the hosts answered"));
  if (::lseek(input.get(), 0, SEEK_SET) != 0) return base::system_error("lseek", "what the hosts answered");
  std::vector<std::string> arguments = {"--", "compare", name};
  if (options.json) arguments.insert(arguments.begin(), "--json");
  return run_env_program(std::move(arguments), {{input.get(), STDIN_FILENO}, {STDOUT_FILENO, STDOUT_FILENO}});
}

}  // namespace

base::Result<int> env_on_hosts(const Invocation& invocation, const RunOptions& options) {
  const std::string& verb = invocation.operands[0];
  const std::string name = name_of(invocation);
  if (name.empty())
    return base::fail(ErrorKind::kUsage, fmt::format("env {} needs an environment", verb))
        .with_hint(fmt::format("phalanx env {} ENV <host>,<host>", verb));
  if (verb == "push") return push(name, options, invocation.has(Flag::kYes), language_here());
  return verb == "verify" ? verify(name, options, language_here()) : diff(name, options, language_here());
}

}  // namespace phalanx::cli
