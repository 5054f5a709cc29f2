#include "engine/comm/shm/barrier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/text.h"
#include "engine/comm/group.h"
#include "os/files.h"

namespace phalanx::engine::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLooks = 100;  // some 3 µs
constexpr std::chrono::microseconds kLook{20};
constexpr milliseconds kSleep{200};  // then the missing rank's lock is looked at
constexpr size_t kWords = sizeof(CallNote) / 8;

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// /proc/<pid>/stat: the state and the start time, in ticks since the boot. False if there is no such process, or it cannot be told.
struct ProcessLife {
  char state = 0;
  uint64_t started = 0;
};
bool read_life(int64_t pid, ProcessLife& life) {
  auto text = os::read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text.ok()) return false;
  const size_t name_end = text->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return false;
  const std::vector<std::string_view> fields = base::split(std::string_view(*text).substr(name_end + 2), ' ');
  constexpr size_t kStarted = 19;  // proc(5): field 22, here from the state, which is field 3
  if (fields.size() <= kStarted || fields[0].empty()) return false;
  life.state = fields[0][0];
  life.started = std::strtoull(std::string(fields[kStarted]).c_str(), nullptr, 10);
  return true;
}

uint64_t pid_space() {
  struct stat info{};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", base::format_ranges(ranks));
}

}  // namespace

struct ShmBarrier::Head {
  std::atomic<uint32_t> first_gone{0};  // index + 1 of the first rank that was found missing
};

struct alignas(128) ShmBarrier::State {
  std::atomic<uint32_t> step{0};      // also the futex word
  std::atomic<uint32_t> sleepers{0};  // who sleeps on it
  // The rank's process: a child that it forked without exec shares its lock, and may outlive it. 0: not known.
  std::atomic<int64_t> pid{0};
  std::atomic<uint64_t> started{0}, pid_space{0};
  std::atomic<uint64_t> notes[2][kWords];
};

size_t ShmBarrier::bytes_for(int count) {
  const auto ranks = static_cast<size_t>(count);
  const size_t states = sizeof(State) * (ranks + 1);
  return (states + 4095) / 4096 * 4096 + ranks * 2 * kTrayBytes;
}

ShmBarrier::ShmBarrier(std::shared_ptr<Mapping> memory, os::Fd file, int index, std::vector<int> ranks)
    : memory_(std::move(memory)), file_(std::move(file)), index_(index), ranks_(std::move(ranks)), crowded_(count() > cores()) {}

ShmBarrier::~ShmBarrier() = default;

ShmBarrier::State& ShmBarrier::state(int index) const { return reinterpret_cast<State*>(memory_->data())[index + 1]; }

base::Status ShmBarrier::lock() {
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = index_;
  wanted.l_len = 1;
  if (fcntl(file_.get(), F_OFD_SETLK, &wanted) != 0) return base::system_error("F_OFD_SETLK", fmt::format("byte {} of a segment", index_));
  if (ProcessLife life; read_life(getpid(), life)) {
    State& own = state(index_);
    own.started.store(life.started, std::memory_order_relaxed);
    own.pid_space.store(pid_space(), std::memory_order_relaxed);
    own.pid.store(getpid(), std::memory_order_release);
  }
  return base::ok();
}

bool ShmBarrier::alive(int index) const {
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = index;
  wanted.l_len = 1;
  const bool locked = fcntl(file_.get(), F_OFD_GETLK, &wanted) != 0 || wanted.l_type != F_UNLCK;
  if (!locked) return false;
  // Somebody holds the lock: the rank, or a child of it.
  const State& peer = state(index);
  const int64_t pid = peer.pid.load(std::memory_order_acquire);
  if (pid == 0 || peer.pid_space.load(std::memory_order_relaxed) != pid_space()) return true;
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  ProcessLife life;
  if (!read_life(pid, life)) return true;
  return life.started == peer.started.load(std::memory_order_relaxed) && life.state != 'Z' && life.state != 'X';
}

void ShmBarrier::write(const CallNote& note) {
  uint64_t words[kWords];
  std::memcpy(words, &note, sizeof note);
  auto& slot = state(index_).notes[(step_ + 1) % 2];
  for (size_t i = 0; i < kWords; ++i) slot[i].store(words[i], std::memory_order_relaxed);
}

CallNote ShmBarrier::read(int index) const {
  uint64_t words[kWords];
  const auto& slot = state(index).notes[step_ % 2];
  for (size_t i = 0; i < kWords; ++i) words[i] = slot[i].load(std::memory_order_relaxed);
  CallNote note;
  std::memcpy(&note, words, sizeof note);
  return note;
}

const char* ShmBarrier::tray_of(int index) const {
  const size_t states = sizeof(State) * static_cast<size_t>(count() + 1);
  return memory_->data() + (states + 4095) / 4096 * 4096 + (static_cast<size_t>(index) * 2 + step_ % 2) * kTrayBytes;
}

char* ShmBarrier::tray() {
  const size_t states = sizeof(State) * static_cast<size_t>(count() + 1);
  return memory_->data() + (states + 4095) / 4096 * 4096 + (static_cast<size_t>(index_) * 2 + (step_ + 1) % 2) * kTrayBytes;
}

bool ShmBarrier::arrived(int index) const { return static_cast<int32_t>(state(index).step.load(std::memory_order_acquire) - step_) >= 0; }

void ShmBarrier::meet(milliseconds limit) {
  State& own = state(index_);
  ++step_;
  own.step.store(step_, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) > 0) futex(own.step, FUTEX_WAKE, INT32_MAX, nullptr);
  steady_clock::time_point end{};  // the clock is read only when somebody is late
  for (int i = 1; i < count(); ++i) {
    const int peer = (index_ + i) % count();
    if (arrived(peer)) continue;
    if (end == steady_clock::time_point{}) end = steady_clock::now() + limit;
    await(peer, end, limit);
  }
}

void ShmBarrier::await(int index, steady_clock::time_point end, milliseconds limit) {
  // First as if it had a core of its own, then letting it have this one.
  for (int i = 0; !crowded_ && i < kLooks; ++i) {
    if (arrived(index)) return;
    pause();
  }
  const auto look_until = steady_clock::now() + kLook;
  while (steady_clock::now() < look_until) {
    sched_yield();
    if (arrived(index)) return;
  }
  State& peer = state(index);
  while (!arrived(index)) {
    const auto now = steady_clock::now();
    if (now >= end) fail_late(limit);
    const auto left = std::min<std::chrono::nanoseconds>(kSleep, end - now).count();
    const timespec timeout{left / 1000000000, left % 1000000000};
    peer.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = peer.step.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - step_) < 0) futex(peer.step, FUTEX_WAIT, seen, &timeout);
    peer.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    // It may have arrived and then left for good: look once more.
    if (!arrived(index) && !alive(index) && !arrived(index)) fail_gone(index);
  }
}

void ShmBarrier::fail_gone(int index) const {
  // Ranks end one after the other because of the first; all name that one.
  auto& first = reinterpret_cast<Head*>(memory_->data())->first_gone;
  uint32_t expected = 0;
  const auto mine = static_cast<uint32_t>(index + 1);
  const uint32_t gone = first.compare_exchange_strong(expected, mine) ? mine : expected;
  const int named = gone >= 1 && gone <= ranks_.size() ? static_cast<int>(gone - 1) : index;
  throw PeerExited(fmt::format("rank {} has exited", ranks_[static_cast<size_t>(named)]));
}

void ShmBarrier::fail_late(milliseconds limit) const {
  std::vector<int> late;
  std::string where;
  for (int i = 0; i < count(); ++i) {
    if (arrived(i)) continue;
    late.push_back(ranks_[static_cast<size_t>(i)]);
    if (!where.empty()) continue;
    // Its note of the last step it came to. It may be writing the next one, but into the other slot.
    const uint32_t at = state(i).step.load(std::memory_order_acquire);
    uint64_t words[kWords];
    for (size_t w = 0; w < kWords; ++w) words[w] = state(i).notes[at % 2][w].load(std::memory_order_relaxed);
    CallNote note;
    std::memcpy(&note, words, sizeof note);
    where = at == 0 ? "it has not made any call" : fmt::format("its last call was {}", note.say());
  }
  throw std::runtime_error(fmt::format("{} did not arrive within {:.3g} s ({}{})", ranks_text(late),
                                       static_cast<double>(limit.count()) / 1e3,
                                       late.size() > 1 ? fmt::format("rank {}: ", late.front()) : "", where));
}

}  // namespace phalanx::engine::comm
