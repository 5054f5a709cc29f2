#include "comm/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "engine/comm/flight.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::processes {

using engine::comm::GroupOptions;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

Processes::Processes(int world, const GroupOptions& options, const Body& body, const std::function<void()>& before) {
  for (int rank = 0; rank < world; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) _exit(be(rank, world, options, body, before));
    pids_.push_back(pid);
  }
}

Processes::~Processes() {
  for (pid_t pid : pids_)
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
}

void Processes::kill_rank(int rank) { kill(pids_[static_cast<size_t>(rank)], SIGKILL); }

int Processes::end_of(int rank, milliseconds limit) {
  pid_t& pid = pids_[static_cast<size_t>(rank)];
  const auto end = steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (steady_clock::now() > end) return -1;
    std::this_thread::sleep_for(milliseconds{5});
  }
  pid = 0;
  return status;
}

void Processes::wait_for_start(int world) {
  for (int rank = 0; rank < world; ++rank)
    while (access(path("began", rank).c_str(), F_OK) != 0) std::this_thread::sleep_for(milliseconds{2});
}

std::string Processes::path(const char* name, int rank) { return folder_ / fmt::format("{}_{}", name, rank); }

std::string Processes::began(int rank) { return os::read_file(path("began", rank), 1 << 16).value(); }

std::string Processes::said(int rank) {
  auto text = os::read_file(path("said", rank), 1 << 16);
  return text.ok() ? *text : "";
}

std::string Processes::flight(int rank) {
  const std::string file = path("flight", rank);
  std::remove(file.c_str());
  os::Fd pipe(open((file + ".pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.valid() || write(pipe.get(), "1\n", 2) != 2) return "";
  const auto end = steady_clock::now() + milliseconds{5000};
  while (access(file.c_str(), F_OK) != 0 && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds{2});
  auto text = os::read_file(file, 64 << 20);
  return text.ok() ? *text : "";
}

int Processes::be(int rank, int world, GroupOptions options, const Body& body, const std::function<void()>& before) {
  try {
    before();
    auto ring = std::make_shared<engine::comm::FlightRing>(path("flight", rank));
    std::vector<int> all(static_cast<size_t>(world));
    std::iota(all.begin(), all.end(), 0);
    ring->add_group("world", all);
    auto pipe = engine::comm::FlightPipe::listen(*ring, path("flight", rank) + ".pipe");
    if (!pipe.ok()) throw std::runtime_error(pipe.error().render());
    options.flight = ring;
    auto store = c10::make_intrusive<c10d::FileStore>(folder_ / "store", world);
    auto group = engine::comm::make_group({store, rank == 0}, {rank, world, at::kCPU, "127.0.0.1", ""}, options);
    leave_note("began", rank, group->describe());
    body(*group);
    return 0;
  } catch (const std::exception& failure) {
    leave_note("said", rank, failure.what());
    return kThrew;
  }
}

void Processes::leave_note(const char* name, int rank, const std::string& text) {
  const std::string file = path(name, rank);
  if (FILE* out = std::fopen((file + ".new").c_str(), "w")) {
    std::fputs(text.c_str(), out);
    std::fclose(out);
    std::rename((file + ".new").c_str(), file.c_str());
  }
}

}  // namespace phalanx::processes
