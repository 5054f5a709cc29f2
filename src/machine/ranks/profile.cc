#include "machine/ranks/profile.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/ranks/stack_scan.h"
#include "machine/ranks/use.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kStackBytes = 16 << 10;
constexpr size_t kFrames = 12, kPythonFrames = 24;
constexpr size_t kMostPlaces = 48;  // of one rank
constexpr os::milliseconds kPythonBudget{50};

// Shells and the like around the program that trains.
bool only_starts_others(const std::string& name) {
  for (const char* one : {"sh", "bash", "dash", "zsh", "env", "numactl", "time", "nice", "taskset", "timeout"})
    if (name == one) return true;
  return false;
}

pid_t trainer(const std::vector<pid_t>& family) {
  for (pid_t pid : family) {
    ProcessUse use;
    if (read_use(pid, use) && !only_starts_others(use.name)) return pid;
  }
  return family.front();
}

class Subject {
 public:
  Subject(const RankProcess& rank, pid_t pid, int memory_file) : pid_(pid), scan_(pid), memory_(pid, memory_file) {
    profile_.rank = rank.rank;
    base::Result<std::optional<Interpreter>> found = find_interpreter(pid, scan_.maps(), memory_);
    if (found.ok()) interpreter_ = *found;
    tids_ = numbers_in(fmt::format("/proc/{}/task", pid));
  }

  void look() {
    ThreadSample t;
    t.tid = pid_;
    const std::string folder = fmt::format("/proc/{}/", pid_);
    ProcessUse use;
    if (!read_use(folder + "task/" + std::to_string(pid_) + "/stat", use)) return;
    t.state = std::string(1, use.state);
    if (use.state != 'R') wait(folder, t);
    if (interpreter_) python(t);
    ++profile_.looks;
    for (OftenSeen& seen : profile_.seen) {
      if (!same(seen.thread, t)) continue;
      ++seen.times;
      return;
    }
    if (profile_.seen.size() < kMostPlaces) profile_.seen.push_back({1, std::move(t)});
  }

  RankProfile take() { return std::move(profile_); }

 private:
  void wait(const std::string& folder, ThreadSample& t) {
    t.wchan = base::printable(read_word(folder + "wchan"), 64);
    if (t.wchan == "0") t.wchan.clear();
    std::string call = read_word(folder + "syscall");
    std::vector<std::string_view> words = base::split_words(call);
    if (words.size() < 3) return;
    uint64_t sp = std::strtoull(std::string(words[words.size() - 2]).c_str(), nullptr, 16);
    uint64_t pc = std::strtoull(std::string(words[words.size() - 1]).c_str(), nullptr, 16);
    t.frames = scan_.frames(sp, pc, kStackBytes, kFrames);
  }

  void python(ThreadSample& t) {
    base::Result<PythonStacks> stacks = read_python(*interpreter_, memory_, tids_, os::mono_now() + kPythonBudget);
    if (!stacks.ok()) return;
    for (PythonThread& thread : stacks->threads)
      if (thread.tid == pid_) t.python = std::move(thread.frames);
    if (t.python.size() > kPythonFrames) t.python.resize(kPythonFrames);
  }

  static bool same(const ThreadSample& a, const ThreadSample& b) {
    return a.state == b.state && a.wchan == b.wchan && a.frames == b.frames &&
           std::equal(a.python.begin(), a.python.end(), b.python.begin(), b.python.end(), [](const PythonFrame& x, const PythonFrame& y) {
             return x.line == y.line && x.function == y.function && x.file == y.file;
           });
  }

  pid_t pid_;
  StackScan scan_;
  ProcessMemory memory_;
  std::optional<Interpreter> interpreter_;
  std::vector<int64_t> tids_;
  RankProfile profile_;
};

}  // namespace

std::vector<RankProfile> profile_ranks(const std::vector<RankProcess>& ranks, uint32_t looks, os::milliseconds budget,
                                       const OpenedMemories& opened) {
  std::vector<pid_t> roots;
  for (const RankProcess& rank : ranks) roots.push_back(rank.pid);
  std::vector<std::vector<pid_t>> all = families(roots);
  std::vector<std::unique_ptr<Subject>> subjects;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const pid_t pid = trainer(all[i]);
    auto file = opened.find(pid);
    subjects.push_back(std::make_unique<Subject>(ranks[i], pid, file == opened.end() ? -1 : file->second.get()));
  }
  // At moments of chance, so that no rhythm of the steps is met in the same place again and again.
  const os::Mono began = os::mono_now();
  std::minstd_rand dice(static_cast<unsigned>(began.ns));
  const os::nanoseconds part = os::nanoseconds(budget) / std::max<uint32_t>(1, looks);
  for (uint32_t i = 0; i < looks; ++i) {
    const os::Mono at = began + i * part + std::uniform_int_distribution<int64_t>(0, part.count())(dice) * os::nanoseconds(1);
    const int64_t left_ms = (at - os::mono_now()).count() / 1'000'000;
    if (left_ms > 0) ::poll(nullptr, 0, static_cast<int>(left_ms));
    for (const auto& subject : subjects) subject->look();
  }
  std::vector<RankProfile> profiles;
  for (const auto& subject : subjects) profiles.push_back(subject->take());
  return profiles;
}

}  // namespace phalanx::machine
