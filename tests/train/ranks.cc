#include "ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/tensor.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <barrier>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "engine/comm/make_group.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::ranks {

using engine::comm::Group;
using engine::comm::GroupOptions;

namespace {

void run_threads(int world, const std::function<void(Group&)>& body, const std::function<void(Group&)>& end, const GroupOptions& options,
                 int hosts = 0) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const std::string host = hosts ? "host " + std::to_string(rank * hosts / world) : "";
        auto group = engine::comm::make_group({store, rank == 0}, {rank, world, at::kCPU, "127.0.0.1", "", host}, options);
        body(*group);
        end(*group);
      } catch (const std::exception& failure) { ADD_FAILURE() << "rank " << rank << ": " << engine::comm::reason(failure); }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void run(int world, const std::function<void(Group&)>& body, const GroupOptions& options) {
  run_threads(world, body, [](Group& group) { group.leave(); }, options);
}

void run_on_hosts(int hosts, int world, const std::function<void(Group&)>& body) {
  run_threads(world, body, [](Group& group) { group.leave(); }, {}, hosts);
}

void run_apart(int world, const std::function<void(Group&)>& body, const GroupOptions& options) {
  std::barrier done(world);
  run_threads(world, body, [&done](Group&) { done.arrive_and_wait(); }, options);
}

TempFolder::TempFolder() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/phalanx-train-XXXXXX";
  path_ = mkdtemp(pattern.data());
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

uint16_t free_port() {
  os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::string golden_text(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(97 + (i * i / 3 + i / 7 + (i % 5) * 3) % 26));
  return text;
}

base::Json golden() {
  auto text = os::read_file(PHALANX_TRAIN_TESTS "/train/golden.json", 1 << 20);
  return base::parse_json(text.value()).value();
}

double apart(const at::Tensor& grad, const base::Json& golden) {
  const at::Tensor truth = at::tensor(golden["values"].get<std::vector<double>>());
  const at::Tensor all = grad.to(at::kDouble);
  const at::Tensor ours = at::slice(all, 0, 0, all.numel(), golden["every"].get<int64_t>());
  if (ours.numel() != truth.numel()) throw std::logic_error("a gradient of another length than the golden one");
  const double norm = golden["norm"];
  const double elements = (ours - truth).norm().item<double>() / truth.norm().item<double>();
  const double whole = std::abs(all.norm().item<double>() - norm) / norm;
  return std::isnan(elements) ? elements : std::max(elements, whole);
}

}  // namespace phalanx::ranks
