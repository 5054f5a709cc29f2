#include "machine/python/frames.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "machine/python/code.h"
#include "machine/small_files.h"

namespace phalanx::machine {
namespace {

using base::ErrorKind;
using base::fail;

constexpr size_t kMostInterpreters = 16, kMostThreads = 256;
constexpr size_t kMostWalked = 4096;  // frames of a thread: beyond, its stack is taken for broken
constexpr size_t kMostShown = 64;
constexpr int kMostTries = 5;
constexpr size_t kFrameBytes = 512;     // of which the layout's fields may be part
constexpr size_t kPthreadBytes = 1024;  // of a thread's descriptor in the C library, which holds its tid

// A frame as it lies in memory: what two readings must agree on.
struct RawFrame {
  uint64_t at = 0, code = 0, place = 0, copy = 0;
  FrameState state = FrameState::kRuns;
};

class Reader {
 public:
  Reader(const Interpreter& interpreter, Memory& memory, const std::vector<int64_t>& tids, os::Mono end)
      : layout_(interpreter.layout), runtime_(interpreter.runtime), memory_(memory), codes_(layout_, memory), tids_(tids), end_(end) {}

  base::Result<PythonStacks> all() {
    PythonStacks stacks;
    stacks.version = layout_.version;
    uint64_t interpreter = 0;
    if (!pointer(runtime_ + layout_.interpreters_head, interpreter) || interpreter == 0)
      return fail(ErrorKind::kUnfit, "the interpreter has not started yet, or has ended");
    for (size_t i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
      uint64_t thread = 0;
      if (!pointer(interpreter + layout_.threads_head, thread)) return changed();
      while (thread != 0) {
        if (stacks.threads.size() >= kMostThreads || os::mono_now() > end_) return stacks;
        stacks.threads.push_back(one(thread));
        if (!pointer(thread + layout_.thread_next, thread)) return changed();
      }
      if (!pointer(interpreter + layout_.interpreter_next, interpreter)) return changed();
    }
    return stacks;
  }

 private:
  static base::Error changed() { return fail(ErrorKind::kUnfit, "its list of threads changed while it was read"); }
  bool pointer(uint64_t at, uint64_t& into) { return memory_.read(at, &into, sizeof(into)); }

  PythonThread one(uint64_t thread) {
    PythonThread out;
    out.tid = tid_of(thread);
    std::vector<RawFrame> raw, again;
    size_t best = 0;
    for (int tries = 0; tries < kMostTries && os::mono_now() <= end_; ++tries) {
      codes_.forget();  // an address may hold another function by now
      if (!walk(thread, raw)) continue;
      std::vector<std::pair<size_t, PythonFrame>> frames;  // with what remains outside of each
      bool whole = true;
      for (size_t i = 0; i < raw.size() && whole && frames.size() < kMostShown; ++i) {
        if (raw[i].state == FrameState::kEntry) continue;
        std::optional<PythonFrame> frame = codes_.frame(raw[i].code, raw[i].place, raw[i].copy);
        whole = frame.has_value();
        if (whole) frames.emplace_back(raw.size() - i, std::move(*frame));
      }
      if (!whole || !walk(thread, again)) continue;
      size_t common = common_end(raw, again);
      bool same = common == raw.size() && common == again.size();
      if (!same && common <= best) continue;
      best = common;
      out.frames.clear();
      for (auto& [outside, frame] : frames)
        if (outside <= common) out.frames.push_back(std::move(frame));
      if (same) return out;
    }
    out.problem = "its stack changed while it was read";
    return out;
  }

  // How many of the outermost frames both readings have in the same place. The innermost of them may have moved on, as a loop does: its
  // line is where it was at the first reading.
  static size_t common_end(const std::vector<RawFrame>& a, const std::vector<RawFrame>& b) {
    size_t common = 0;
    while (common < a.size() && common < b.size()) {
      const RawFrame &x = a[a.size() - 1 - common], &y = b[b.size() - 1 - common];
      if (x.at != y.at || x.code != y.code) break;
      ++common;
      if (x.place != y.place) break;
    }
    return common;
  }

  bool walk(uint64_t thread, std::vector<RawFrame>& frames) {
    frames.clear();
    uint64_t at = 0;
    if (!pointer(thread + layout_.thread_frame, at)) return false;
    if (layout_.cframe_frame && (at == 0 || !pointer(at + *layout_.cframe_frame, at))) return false;
    const size_t needed = std::max(
        {layout_.frame_previous + 8, layout_.frame_code + 8, layout_.frame_place + 8, layout_.frame_state + 1, layout_.frame_copy + 4});
    if (needed > kFrameBytes) return false;
    char bytes[kFrameBytes];
    while (at != 0) {
      if (frames.size() >= kMostWalked || !memory_.read(at, bytes, needed)) return false;
      RawFrame frame;
      frame.at = at;
      std::memcpy(&frame.code, bytes + layout_.frame_code, 8);
      frame.code &= ~uint64_t{7};  // since 3.14 the lowest bits are marks (_PyStackRef)
      std::memcpy(&frame.place, bytes + layout_.frame_place, layout_.version < kPointsIntoCode ? 4 : 8);
      frame.state = frame_state(layout_.version, static_cast<uint8_t>(bytes[layout_.frame_state]));
      if (layout_.frame_copy != 0) std::memcpy(&frame.copy, bytes + layout_.frame_copy, 4);
      frames.push_back(frame);
      std::memcpy(&at, bytes + layout_.frame_previous, 8);
      // A function that has just returned, or a generator that has just yielded, leads nowhere: the stack changes.
      if (frame.state == FrameState::kOver || (frame.state == FrameState::kGenerator && at == 0)) return false;
    }
    return true;
  }

  bool is_tid(int64_t tid) const { return std::find(tids_.begin(), tids_.end(), tid) != tids_.end(); }

  // Until 3.10 only the pthread_t is known: the descriptor of the thread in the C library, which holds the kernel's number of it.
  int64_t tid_of(uint64_t thread) {
    uint64_t value = 0;
    if (layout_.native_id != 0)
      return pointer(thread + layout_.native_id, value) && is_tid(static_cast<int64_t>(value)) ? static_cast<int64_t>(value) : 0;
    int32_t words[kPthreadBytes / 4];
    if (!pointer(thread + layout_.thread_id, value) || !memory_.read(value, words, sizeof(words))) return 0;
    for (int32_t word : words)
      if (word > 0 && is_tid(word)) return word;
    return 0;
  }

  const PythonLayout& layout_;
  uint64_t runtime_;
  Memory& memory_;
  CodeReader codes_;
  const std::vector<int64_t>& tids_;
  os::Mono end_;
};

}  // namespace

base::Result<PythonStacks> read_python(const Interpreter& interpreter, Memory& memory, const std::vector<int64_t>& tids, os::Mono end) {
  return Reader(interpreter, memory, tids, end).all();
}

base::Result<std::optional<PythonStacks>> python_stacks(pid_t pid, const std::vector<Mapping>& maps, int memory_file, os::Mono end) {
  ProcessMemory memory(pid, memory_file);
  base::Result<std::optional<Interpreter>> interpreter = find_interpreter(pid, maps, memory);
  if (!interpreter.ok()) return std::move(interpreter).error();
  if (!*interpreter) return std::optional<PythonStacks>();
  if (!memory.problem().empty()) return fail(ErrorKind::kUnfit, fmt::format("its memory cannot be read: {}", memory.problem()));
  base::Result<PythonStacks> stacks = read_python(**interpreter, memory, numbers_in(fmt::format("/proc/{}/task", pid)), end);
  if (!stacks.ok()) return std::move(stacks).error();
  return std::optional(std::move(stacks).value());
}

}  // namespace phalanx::machine
