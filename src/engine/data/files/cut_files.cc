#include "engine/data/files/cut_files.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace phalanx::engine::data {
namespace {

// The handler walks this list without a lock: entries are never freed, one that is not in use has no bytes and serves another mapping
// later.
struct Entry {
  std::atomic<const char*> begin{nullptr};
  std::atomic<size_t> bytes{0};
  std::atomic<const char*> path{nullptr};
  Entry* next = nullptr;
};
std::atomic<Entry*> newest_entry{nullptr};
std::mutex entry_changes;
struct sigaction earlier_action{};

void write_all(const char* text) {
  for (size_t left = std::strlen(text); left > 0;) {
    const ssize_t n = write(STDERR_FILENO, text, left);
    if (n <= 0) return;
    text += n;
    left -= static_cast<size_t>(n);
  }
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const char* address = static_cast<const char*>(info->si_addr);
  for (const Entry* e = newest_entry.load(std::memory_order_acquire); e != nullptr; e = e->next) {
    const size_t bytes = e->bytes.load(std::memory_order_acquire);
    const char* begin = e->begin.load(std::memory_order_relaxed);
    if (bytes == 0 || address < begin || address >= begin + bytes) continue;
    write_all("error: cannot read the data file ");
    write_all(e->path.load(std::memory_order_relaxed));
    write_all("\nbecause the file was truncated while it was read, or its disk failed\n");
    write_all("hint: write new data to a new file and rename it; do not change a file in use\n");
    _exit(kCutFileExit);
  }
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0 && earlier_action.sa_sigaction != nullptr)
    return earlier_action.sa_sigaction(number, info, context);
  sigaction(SIGBUS, &earlier_action, nullptr);
  raise(number);  // delivered when this returns
}

}  // namespace

void remember_mapping(const void* begin, size_t bytes, const std::string& path) {
  std::lock_guard lock(entry_changes);
  Entry* entry = newest_entry.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->bytes.load(std::memory_order_relaxed) != 0) entry = entry->next;
  const bool is_new = entry == nullptr;
  if (is_new) entry = new Entry;
  delete[] entry->path.load(std::memory_order_relaxed);
  char* text = new char[path.size() + 1];
  std::memcpy(text, path.c_str(), path.size() + 1);
  entry->path.store(text, std::memory_order_relaxed);
  entry->begin.store(static_cast<const char*>(begin), std::memory_order_relaxed);
  entry->bytes.store(bytes, std::memory_order_release);
  if (!is_new) return;
  entry->next = newest_entry.load(std::memory_order_relaxed);
  newest_entry.store(entry, std::memory_order_release);
}

void forget_mapping(const void* begin) {
  std::lock_guard lock(entry_changes);
  for (Entry* e = newest_entry.load(std::memory_order_relaxed); e != nullptr; e = e->next) {
    if (e->bytes.load(std::memory_order_relaxed) == 0 || e->begin.load(std::memory_order_relaxed) != begin) continue;
    e->bytes.store(0, std::memory_order_release);
    return;
  }
}

void name_cut_files() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours{};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, &earlier_action);
  });
}

}  // namespace phalanx::engine::data
