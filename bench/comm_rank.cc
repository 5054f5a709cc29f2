// One rank of bench/comm.py: times the engine's collectives. Joins by the launcher's variables and prints, on rank 0, one line for each
// operation and size: "NAME BYTES SECONDS".
// Usage: comm_rank SIZE[,SIZE…] — bytes of a whole tensor.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/text.h"
#include "engine/comm/group.h"

using namespace phalanx;

namespace {

using engine::comm::Group;
using engine::comm::Reduction;

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The median of as many calls as all ranks agree on: about 60 ms of them, at least 3. Small ones are timed in tens.
void time(Group& group, const std::string& name, int64_t bytes, const std::function<void()>& call) {
  call();
  at::Tensor once = at::zeros({1}, at::TensorOptions().dtype(at::kDouble));
  once.data_ptr<double>()[0] = seconds_of(call);
  group.all_reduce(once, Reduction::kMax, "time of one");
  const int together = bytes <= (64 << 10) ? 10 : 1;
  const int rounds = std::clamp(static_cast<int>(0.06 / once.data_ptr<double>()[0] / together), 3, 200);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    group.barrier("round", std::chrono::minutes{1});
    times.push_back(seconds_of([&] {
                      for (int k = 0; k < together; ++k) call();
                    }) /
                    together);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  if (group.rank() == 0) fmt::print("{} {} {:.9f}\n", name, bytes, times[static_cast<size_t>(rounds / 2)]);
}

void measure(Group& group, int64_t bytes, bool windows) {
  const int64_t elements = std::max<int64_t>(bytes / 4 / group.world(), 1) * group.world(), piece = elements / group.world();
  const auto make = [&](int64_t n) { return windows ? group.window(n, at::kFloat) : at::ones({n}); };
  const std::string suffix = windows ? "/window" : "/plain";
  at::Tensor large = make(elements), small = make(piece);
  time(group, "all_reduce" + suffix, bytes, [&] { group.all_reduce(large, Reduction::kSum, "bench"); });
  large.fill_(1);
  time(group, "reduce_scatter" + suffix, bytes, [&] { group.reduce_scatter(small, large, "bench"); });
  time(group, "all_gather" + suffix, bytes, [&] { group.all_gather(large, small, "bench"); });
  time(group, "broadcast" + suffix, bytes, [&] { group.broadcast(large, 0, "bench"); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto env = engine::comm::read_rank_env(engine::comm::process_environment);
  if (!env.ok()) return 2;
  auto group = engine::comm::join(*env, at::kCPU);
  if (!group.ok()) {
    std::fputs(group.error().render().c_str(), stderr);
    return 1;
  }
  try {
    if (env->rank == 0) fmt::print("# {}\n", (*group)->describe());
    for (std::string_view size : base::split(argv[1], ',')) {
      auto bytes = base::parse_int(size, 4, int64_t{1} << 32);
      if (!bytes.ok()) return 2;
      measure(**group, *bytes, false);
      measure(**group, *bytes, true);
    }
    (*group)->leave();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "rank {}: {}\n", env->rank, engine::comm::reason(failure));
    return 1;
  }
  return 0;
}
