#include "run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "base/json.h"
#include "logs/runs/run_list.h"

namespace phalanx::storage {
namespace {

namespace fs = std::filesystem;

// Rank 1 fails, as the first and only one, once both have said something: a FIFO waits for the other end.
constexpr const char* kFails =
    "echo hello $RANK; mkfifo both 2> /dev/null; if test $RANK = 0; then echo > both; exec sleep 60; else read word < both; exit 7; fi";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Without a watch. The exit code, or -1.
int run_plain(const Program& program) {
  std::vector<char*> argv, environment;
  for (const std::string& word : program.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& word : program.environment) environment.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, program.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, (program.output + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addchdir_np(&actions, program.folder.c_str());
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  const std::optional<int> status = wait_for(pid, std::chrono::seconds(60));
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

int run_plain(const std::vector<std::string>& words, const Place& place, std::string* out = nullptr) {
  const Program program = program_of({"", words, {}}, place);
  const int code = run_plain(program);
  if (out) *out = content(program.output) + content(program.output + ".err");
  return code;
}

std::set<std::string> ids_in(const Place& place) {
  std::set<std::string> ids;
  for (const auto& entry : fs::directory_iterator(place.runs()))
    if (logs::is_run_id(entry.path().filename().string())) ids.insert(entry.path().filename().string());
  return ids;
}

std::vector<std::string> earlier(const Place& place) {
  std::vector<std::string> ids;
  std::ifstream file(place.path + "/earlier");
  for (std::string id; std::getline(file, id);) ids.push_back(id);
  return ids;
}

// The run that the operation has made, "" if none.
std::string made(const Place& place) {
  std::set<std::string> ids = ids_in(place);
  for (const std::string& id : earlier(place)) ids.erase(id);
  return ids.size() == 1 ? *ids.begin() : "";
}

std::optional<int> exit_code(const Ended& ended) {
  return WIFEXITED(ended.status) ? std::optional<int>(WEXITSTATUS(ended.status)) : std::nullopt;
}

// An error that says where, and what to do. "" if it does.
std::string refusal(const Ended& ended) {
  if (!holds(ended.err, "error: ")) return "it has failed without an error";
  if (!holds(ended.err, ended.place.disk())) return "its error does not name the path";
  if (!holds(ended.err, "hint: ")) return "its error does not say what to do";
  return "";
}

std::string check_record(const Ended& ended, const std::string& id, int code) {
  const std::string path = ended.place.runs() + "/" + id, name = path + "/run.json";
  const std::string text = content(name);
  base::Result<base::Json> record = base::parse_json(text, 1 << 20);
  const bool whole = record.ok() && base::get_string(*record, "state") == "ended" && base::get_int(*record, "exit_code") == code;
  if (!text.empty() && !record.ok()) return "half a record: " + text;
  if (!whole && !holds(ended.err, name)) return "its record is not whole, and nothing was said of it: " + text.substr(0, 200);
  for (int rank : {0, 1}) {
    const std::string log = fmt::format("{}/ranks/{}.log", path, rank), said = content(log);
    if (!holds(said, fmt::format("hello {}", rank)) && !holds(ended.err, log)) return "output is lost without a word: " + log;
  }
  return "";
}

// The disk is no part of a run: either it is refused before anything has started, or it takes the course it would have taken.
std::string check_run(const Ended& ended, const Ended&) {
  const std::string id = made(ended.place);
  if (ended.interrupted) {
    if (holds(ended.out, "hello")) return "a run that had started waited for its disk";
    if (!holds(ended.err, ended.place.disk())) return "it waited for the disk without a word";
    return "";
  }
  if (exit_code(ended) == 2) {
    if (holds(ended.out, "hello")) return "a run was given up after it had started";
    if (!id.empty()) return "a run that was refused has left its folder";
    return refusal(ended);
  }
  if (exit_code(ended) != 7) return fmt::format("wait status {:#x} instead of exit code 7", ended.status);
  if (!holds(ended.out, "hello 0") || !holds(ended.out, "hello 1")) return "output is missing on the screen";
  if (!holds(ended.err, "rank 1") || !holds(ended.err, "exited with code 7")) return "another verdict";
  for (const char* blames : {"lost contact", "no response", "no response for", "FS-", "hung, or unreachable", "unreachable"})
    if (holds(ended.err, blames)) return fmt::format("a host is blamed: {}", blames);
  if (id.empty()) return "there is no run directory";
  return check_record(ended, id, 7);
}

std::string check_detached(const Ended& ended, const Ended&) {
  const std::string id = made(ended.place);
  if (ended.interrupted) return holds(ended.err, ended.place.disk()) ? "" : "it waited for the disk without a word";
  if (exit_code(ended) == 2) {
    if (!id.empty()) return "a run that was refused has left its folder";
    return refusal(ended);
  }
  // It had failed before the launcher left the terminal.
  if (exit_code(ended) == 7 && holds(ended.err, "exited with code 7")) return check_record(ended, id, 7);
  if (exit_code(ended) != 0) return fmt::format("wait status {:#x} instead of exit code 0", ended.status);
  if (ended.out != id + "\n") return "it printed " + ended.out;
  Ended with_log = ended;
  with_log.err += content(ended.place.runs() + "/" + id + "/launcher.log") + content(ended.place.runs() + "/" + id + "/events.jsonl");
  return check_record(with_log, id, 7);
}

// What only looks gives the right answer or an error, never another answer.
std::string check_answer(const Ended& ended, const Ended& plain) {
  if (ended.interrupted) return "";
  if (exit_code(ended) == exit_code(plain) && ended.out == plain.out) return "";
  if (ended.status == plain.status && holds(ended.err, ended.place.disk())) return "";  // it tells what it could not see
  if (ended.status == plain.status) return "it gives another answer without a word: " + ended.out.substr(0, 400);
  return refusal(ended);
}

std::string check_report(const Ended& ended, const Ended&) {
  if (ended.interrupted) return fs::exists(ended.place.path + "/report.tgz") ? "half an archive" : "";
  if (exit_code(ended) != 0) return exit_code(ended) ? refusal(ended) : "it was killed";
  const std::string into = ended.place.path + "/unpacked";
  fs::remove_all(into);
  fs::create_directory(into);
  const std::string archive = ended.place.path + "/report.tgz";
  Program tar = program_of({"", {}, {}}, ended.place);
  tar.argv = {"/bin/tar", "-xzf", archive, "-C", into, "--strip-components=1"};
  if (run_plain(tar) != 0) return "the archive cannot be unpacked";
  const std::string run = ended.place.runs() + "/" + earlier(ended.place)[1];
  for (const char* name : {"run.json", "events.jsonl", "ranks/0.log", "ranks/1.log", "report.html"}) {
    // Records are written anew, line by line and without secrets; the page has no counterpart.
    const std::string packed = content(into + "/" + name), original = content(run + "/" + name);
    const bool log = std::string_view(name).ends_with(".log");
    const bool right = log ? packed == original : !packed.empty() && (original.empty() || lines_of(packed) == lines_of(original));
    if (!right && !holds(ended.err, ended.place.disk())) return fmt::format("{} is not whole in the archive, and nothing was said", name);
  }
  return "";
}

std::string start_run(const Place& place, const char* then) {
  const std::string script = fmt::format("echo hello $RANK; {}", then);
  std::string said;
  const int code = run_plain({"run", "-d", "--preflight", "off", "--nproc-per-node", "2", "--", "sh", "-c", script}, place, &said);
  return code == 0 ? "" : fmt::format("run -d: exit code {}: {}", code, said);
}
std::string start_endless(const Place& place) { return start_run(place, "exec sleep 60"); }
std::string start_short(const Place& place) { return start_run(place, "test $RANK = 0 || { sleep 1.5; exit 17; }; exec sleep 60"); }

// Whether the launcher of the run that was started beside the operation lives, by what the next ps says of it.
std::string state_of_made(const Place& place, const std::string& id) {
  std::string said;
  if (run_plain({"ps", "-a", "--json"}, place, &said) != 0) return "the next ps fails: " + said;
  base::Result<base::Json> listed = base::parse_json(said, 1 << 20);
  if (!listed.ok()) return "the next ps prints no JSON: " + said;
  for (const base::Json& run : (*listed)["runs"])
    if (run["id"] == id) return base::get_string(run, "state").value_or("none");
  return "not listed";
}

// What says that it has stopped a run has. What says that it could not leaves one that can still be stopped.
std::string check_stop(const Ended& ended, const Ended&) {
  const std::string id = made(ended.place);
  if (id.empty()) return "there is no run directory";
  const std::string state = state_of_made(ended.place, id);
  const bool claims = exit_code(ended) == 0;
  if (claims && state != "interrupted") return "it says that the run has stopped, which is " + state;
  std::string said;
  if (state == "running" || state == "starting" || state == "stopping" || state == "silent" || state == "lost") {
    if (const int code = run_plain({"stop", id}, ended.place, &said); code != 0)
      return fmt::format("the next stop of a run that is {} fails: {}: {}", state, code, said);
  } else if (state != "interrupted") {
    return "the run is " + state;
  }
  if (claims || ended.interrupted) return "";
  if (!exit_code(ended)) return "it was killed";
  return refusal(ended);
}

// The run is none of attach's business.
std::string check_attach(const Ended& ended, const Ended& plain) {
  const std::string id = made(ended.place);
  if (id.empty()) return "there is no run directory";
  std::string state = state_of_made(ended.place, id);
  for (int i = 0; i < 100 && (state == "running" || state == "stopping"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    state = state_of_made(ended.place, id);
  }
  if (state != "failed") return "the run is " + state;
  if (ended.interrupted) return "";
  if (exit_code(ended) == exit_code(plain) && holds(ended.err, "exited with code 17")) return "";
  if (exit_code(ended) == exit_code(plain)) return holds(ended.err, ended.place.disk()) ? "" : "the verdict is missing: " + ended.err;
  if (!exit_code(ended)) return "it was killed";
  return refusal(ended);
}

}  // namespace

Program program_of(const Operation& operation, const Place& place) {
  Program program;
  program.argv = {PHALANX_PROGRAM};
  for (std::string word : operation.words) {
    for (size_t at; (at = word.find('@')) != std::string::npos;) word.replace(at, 1, place.path);
    program.argv.push_back(word);
  }
  program.environment = {"PATH=/usr/bin:/bin",
                         "HOME=" + place.path + "/home",
                         "XDG_STATE_HOME=" + place.disk() + "/state",
                         "XDG_CACHE_HOME=" + place.disk() + "/cache",
                         "PHALANX_LANG=en",
                         "LC_ALL=C"};
  program.folder = place.path + "/home";
  program.output = place.path + "/output";
  program.watched = place.disk();
  return program;
}

std::string furnish(const Place& place) {
  fs::create_directories(place.path + "/home");
  fs::create_directories(place.disk() + "/state");
  fs::create_directories(place.disk() + "/cache");
  const std::vector<std::string> run{"run", "--preflight", "off", "--nproc-per-node", "2", "--", "sh", "-c"};
  std::ofstream earlier(place.path + "/earlier");
  std::set<std::string> known;
  for (const auto& [script, code] : {std::pair{"echo hello $RANK", 0}, {kFails, 7}}) {
    std::vector<std::string> words = run;
    words.push_back(script);
    std::string said;
    if (int got = run_plain(words, place, &said); got != code) return fmt::format("exit code {}: {}", got, said);
    for (const std::string& id : ids_in(place))
      if (known.insert(id).second) earlier << id << "\n";
  }
  fs::remove(place.path + "/home/both");
  return "";
}

std::vector<Operation> operations() {
  const std::vector<std::string> run{"run", "--preflight", "off", "--nproc-per-node", "2", "--", "sh", "-c", kFails};
  std::vector<std::string> detached = run;
  detached.insert(detached.begin() + 1, "-d");
  detached.back() = std::string("sleep 0.3; ") + kFails;  // so that it leaves the terminal first
  return {
      {"run", run, check_run},
      {"run -d", detached, check_detached},
      {"ps", {"ps", "-a", "--json"}, check_answer},
      {"logs", {"logs", "latest"}, check_answer},
      {"why", {"why", "latest"}, check_answer},
      {"report", {"report", "-o", "@/report.tgz", "latest"}, check_report},
      {"stop", {"stop", "latest"}, check_stop, start_endless, true},
      {"attach", {"attach", "latest"}, check_attach, start_short, true},
  };
}

std::string aftermath(const Ended& ended) {
  const Place& place = ended.place;
  for (const std::string& id : earlier(place))
    for (const char* name : {"run.json", "events.jsonl", "ranks/0.log", "ranks/1.log"})
      if (content(place.runs() + "/" + id + "/" + name) != content(place.path + "/kept/" + id + "/" + name))
        return fmt::format("{} of an earlier run was touched", name);
  for (const auto& entry : fs::recursive_directory_iterator(place.disk())) {
    const std::string name = entry.path().filename().string();
    // A process that is killed in the middle leaves what it had begun.
    if (!ended.interrupted && (holds(name, ".tmp.") || name.starts_with(".latest."))) return "left: " + entry.path().string();
  }
  std::string said;
  if (run_plain({"ps", "-a", "--json"}, place, &said) != 0) return "the next ps fails: " + said;
  for (const std::string& id : earlier(place))
    if (!holds(said, id)) return "the next ps does not list " + id;
  base::Result<base::Json> listed = base::parse_json(said, 1 << 20);
  if (!listed.ok()) return "the next ps prints no JSON: " + said;
  for (const base::Json& run : (*listed)["runs"])
    if (run["state"] == "lost" && !holds(ended.err, "run.json") && !ended.interrupted) return "the next ps takes a run for lost: " + said;
  fs::remove(place.path + "/next.tgz");
  if (run_plain({"report", "-o", "@/next.tgz", earlier(place)[1]}, place, &said) != 0) return "the next report fails: " + said;
  if (run_plain({"run", "--preflight", "off", "--", "true"}, place, &said) != 0) return "the next run fails: " + said;
  return "";
}

}  // namespace phalanx::storage
