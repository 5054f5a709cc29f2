#include "agent/looks/stack_dump.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/ranks/python_hook.h"
#include "base/text.h"
#include "machine/ranks/ras_client.h"
#include "machine/ranks/use.h"
#include "os/capture.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::agent {
namespace {

constexpr size_t kMostText = 256 << 10;
constexpr size_t kMostDump = 4 << 20;
constexpr size_t kMostTogether = 12 << 20;
constexpr os::milliseconds kHookWait{800};  // a thread that holds the interpreter in C code does not hear the signal
constexpr os::milliseconds kHookLook{10};
constexpr os::milliseconds kLeastForGdb{500};
constexpr os::milliseconds kLeastForService{200}, kServiceWait{1500};  // of NCCL's RAS; where nobody listens the kernel says so at once

int64_t size_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

std::string tail_from(const std::string& path, int64_t offset) {
  base::Result<std::string> text = os::read_file(path, 8 << 20);
  if (!text.ok() || static_cast<int64_t>(text->size()) <= offset) return "";
  return text->substr(static_cast<size_t>(offset), kMostText);
}

char state_of(pid_t pid) {
  machine::ProcessUse use;
  return machine::read_use(pid, use) ? use.state : 'X';
}
bool may_be_touched(pid_t pid) {
  char state = state_of(pid);
  return state != 'T' && state != 't' && state != 'Z' && state != 'X';
}

class Digger {
 public:
  Digger(const wire::Dig& question, std::string path, os::milliseconds budget)
      : path_(std::move(path)), end_(os::mono_now() + budget), debugger_(question.debugger) {
    dug_.id = question.id;
  }

  // All are asked at once, then listened to.
  void ask_hooks(const std::vector<DigTarget>& targets) {
    struct Asked {
      uint32_t rank;
      std::string file;
      int64_t before;
    };
    std::vector<Asked> asked;
    for (const DigTarget& t : targets) {
      if (t.stack_file.empty()) continue;
      std::vector<pid_t> family = std::move(machine::families({t.pid}).front());
      for (pid_t pid : family) {
        if (!may_be_touched(pid) || !catches_hook_signal(pid)) continue;
        asked.push_back({t.rank, t.stack_file, size_of(t.stack_file)});
        ::kill(pid, hook_signal());
        break;  // its workers have inherited the handler: the first is the rank's program
      }
    }
    os::Mono until = std::min(end_, os::mono_now() + kHookWait);
    while (!asked.empty() && os::mono_now() < until) {
      ::poll(nullptr, 0, static_cast<int>(kHookLook.count()));  // the file grows without telling: looked at until the deadline
      std::erase_if(asked, [&](const Asked& a) {
        int64_t size = size_of(a.file);
        if (size <= a.before) return false;
        std::string text = tail_from(a.file, a.before);
        if (text.find("\n  File ") == std::string::npos || text.back() != '\n' || size != size_of(a.file)) return false;
        add(a.rank, wire::PieceKind::kHookStack, std::move(text));
        return true;
      });
    }
  }

  void ask_tools(const DigTarget& t) {
    if (has(t.rank) || !may_be_touched(t.pid) || os::mono_now() > end_) return;
    std::string pid = std::to_string(t.pid);
    if (run(t, "py-spy", {"dump", "--nonblocking", "--pid", pid})) return;
    if (!debugger_ || left() < kLeastForGdb) return;
    run(t, "gdb",
        {"-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-ex", "set pagination off", "-ex",
         "set width 0", "-p", pid, "-ex", "thread apply all bt 24"});
    if (state_of(t.pid) == 'T') ::kill(t.pid, SIGCONT);  // a debugger that is killed while it attaches leaves it stopped
  }

  void collect_dump(const DigTarget& t) {
    base::Result<std::string> block = os::read_file(fmt::format("/proc/{}/environ", t.pid), 1 << 20);
    if (!block.ok()) return;
    std::vector<std::string> environment;
    for (std::string_view entry : base::split(*block, '\0')) environment.emplace_back(entry);
    RecorderFiles files = recorder_files(environment, t.rank);
    if (files.dump.empty()) return;
    if (!files.pipe.empty()) {
      os::Fd pipe(::open(files.pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      int64_t before = size_of(files.dump);
      if (pipe.valid() && ::write(pipe.get(), "1\n", 2) == 2)
        for (os::Mono until = std::min(end_, os::mono_now() + kHookWait); size_of(files.dump) <= before && os::mono_now() < until;)
          ::poll(nullptr, 0, static_cast<int>(kHookLook.count()));
    }
    base::Result<std::string> dump = os::read_file(files.dump, kMostDump);
    if (dump.ok() && !dump->empty()) add(t.rank, wire::PieceKind::kFlightRecord, std::move(dump).value());
  }

  // NCCL's RAS service, which any process of the job answers for all of them.
  void ask_service(const DigTarget& t) {
    base::Result<std::string> block = os::read_file(fmt::format("/proc/{}/environ", t.pid), 1 << 20);
    std::string address;
    if (block.ok())
      for (std::string_view entry : base::split(*block, '\0'))
        if (entry.rfind("NCCL_RAS_ADDR=", 0) == 0) address = entry.substr(14);
    base::Result<std::vector<os::Endpoint>> endpoints = machine::ras_endpoints(address);
    if (!endpoints.ok() || left() < kLeastForService) return;
    machine::RasClient::Options options;
    options.deadline = std::min(left(), kServiceWait);
    options.collect_seconds = 1;
    base::Result<machine::RasAnswer> answer = machine::ask_ras(*endpoints, options);
    if (answer.ok()) add(t.rank, wire::PieceKind::kRasReport, std::move(answer->text));
  }

  wire::Dug take() { return std::move(dug_); }

 private:
  os::milliseconds left() const { return std::chrono::duration_cast<os::milliseconds>(end_ - os::mono_now()); }
  bool has(uint32_t rank) const {
    return std::any_of(dug_.pieces.begin(), dug_.pieces.end(),
                       [&](const wire::Piece& p) { return p.rank == rank && p.kind == wire::PieceKind::kHookStack; });
  }
  void add(uint32_t rank, wire::PieceKind kind, std::string bytes) {
    together_ += bytes.size();
    if (together_ <= kMostTogether) dug_.pieces.push_back({rank, kind, std::move(bytes)});
  }
  bool run(const DigTarget& t, const std::string& tool, std::vector<std::string> arguments) {
    base::Result<std::string> program = os::find_program(tool, path_, "/");
    if (!program.ok()) return false;
    os::CaptureSpec spec;
    spec.program = *program;
    spec.arguments = std::move(arguments);
    spec.arguments.insert(spec.arguments.begin(), tool);
    spec.environment = {"PATH=" + path_, "LANG=C.UTF-8", "HOME=/nonexistent"};
    spec.deadline = std::max(os::milliseconds(1), left());
    spec.most_bytes = kMostText;
    os::Captured captured = os::capture(spec);
    if (captured.output.empty()) return false;
    add(t.rank, wire::PieceKind::kToolStack, std::move(captured.output));
    return true;
  }

  std::string path_;
  os::Mono end_;
  bool debugger_;
  size_t together_ = 0;
  wire::Dug dug_;
};

}  // namespace

RecorderFiles recorder_files(const std::vector<std::string>& environment, uint32_t rank) {
  auto value = [&](std::string_view name) -> std::string {
    for (const std::string& entry : environment)
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0)
        return entry.substr(name.size() + 1);
    return "";
  };
  RecorderFiles files;
  std::string prefix = value("TORCH_FR_DUMP_TEMP_FILE");
  if (prefix.empty()) prefix = value("TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  const std::string ours = value(kFlightFileVariable);
  if (prefix.empty()) prefix = ours;
  if (!prefix.empty()) files.dump = prefix + std::to_string(rank);
  std::string pipe = value("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  if (pipe.empty()) pipe = ours;
  if (!pipe.empty()) files.pipe = fmt::format("{}{}.pipe", pipe, rank);
  return files;
}

wire::Dug dig(const wire::Dig& question, const std::vector<DigTarget>& targets, const std::string& tools_path, os::milliseconds budget) {
  Digger digger(question, tools_path, budget);
  for (const DigTarget& t : targets) digger.collect_dump(t);
  if (!targets.empty()) digger.ask_service(targets.front());
  digger.ask_hooks(targets);
  for (const DigTarget& t : targets) digger.ask_tools(t);
  return digger.take();
}

}  // namespace phalanx::agent
