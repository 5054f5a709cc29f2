#include "pieces.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

namespace phalanx::pieces {

using namespace engine::checkpoint;

Folder::Folder() {
  const bool memory = access("/dev/shm", W_OK) == 0;
  path_ = (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/phalanx-train-XXXXXX";
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
}
Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

State state(int64_t step) {
  State s;
  const auto base = static_cast<double>(step) * 1000;
  for (const char* kind : {"model", "exp_avg", "exp_avg_sq"}) {
    const double add = base + kind[4];
    s[fmt::format("{}.embed.weight", kind)] = at::arange(add, add + 7 * 11, at::kFloat).view({7, 11});
    s[fmt::format("{}.block0.bias", kind)] = at::arange(add, add + 5, at::kFloat);
  }
  s["model.half"] = at::arange(0, 33, at::kFloat).to(at::kBFloat16).view({3, 11}) + static_cast<double>(step % 8);
  s["model.count"] = at::full({}, step, at::kLong);
  s["model.nothing"] = at::empty({0, 4}, at::kFloat);
  s["model.flag"] = at::arange(0, 9, at::kInt).remainder(2).to(at::kBool);
  return s;
}

namespace {

// world + 1 places from 0 to count.
std::vector<int64_t> cuts(int64_t count, int world, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> places{0, count};
  for (int i = 1; i < world; ++i)
    places.push_back(random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(count + 1)));
  std::sort(places.begin(), places.end());
  return places;
}

uint64_t mix(uint64_t seed, const std::string& name) { return seed * 1000003 + std::hash<std::string>()(name); }

}  // namespace

std::vector<Piece> share(const State& state, int rank, int world, uint64_t seed) {
  std::vector<Piece> mine;
  for (const auto& [name, tensor] : state) {
    const std::vector<int64_t> places = cuts(tensor.numel(), world, mix(seed, name));
    const int64_t begin = places[static_cast<size_t>(rank)], end = places[static_cast<size_t>(rank) + 1];
    mine.push_back({name, tensor.sizes().vec(), begin, tensor.reshape({-1}).narrow(0, begin, end - begin)});
    if (end - begin > 3) {  // in two runs
      mine.back().data = mine.back().data.narrow(0, 0, 2);
      mine.push_back({name, tensor.sizes().vec(), begin + 2, tensor.reshape({-1}).narrow(0, begin + 2, end - begin - 2)});
    }
  }
  return mine;
}

std::string save(const std::string& folder, int64_t step, int world, uint64_t seed) {
  static int64_t sequence = 0;
  SaveId id{folder, step, "testtoken", ++sequence, world};
  const State all = state(step);
  const Interrupt interrupt;
  for (int rank = 0; rank < world; ++rank) {
    auto written = write_shard(id, rank, {share(all, rank, world, seed), {{"place", rank * 10}}}, interrupt);
    EXPECT_TRUE(written.ok()) << written.error().render();
  }
  EXPECT_TRUE(claim(folder, id.token).ok());
  FinishOptions how;
  how.state = {{"config", "c"}};
  auto finished = finish(id, how, interrupt);
  EXPECT_TRUE(finished.ok()) << finished.error().render();
  return finished.ok() ? finished->path : "";
}

void expect_state(Reader& reader, int64_t step, int world, uint64_t seed) {
  const State expected = state(step);
  ASSERT_EQ(reader.step(), step);
  ASSERT_EQ(reader.tensors().size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(reader.tensors().contains(name)) << name;
    ASSERT_EQ(reader.tensors().find(name)->second.shape, tensor.sizes().vec()) << name;
    const std::vector<int64_t> places = cuts(tensor.numel(), world, mix(seed, name));
    for (int rank = 0; rank < world; ++rank) {
      const int64_t begin = places[static_cast<size_t>(rank)], end = places[static_cast<size_t>(rank) + 1];
      at::Tensor out = at::full({end - begin}, 77, tensor.scalar_type());
      auto status = reader.read(name, begin, end, out);
      ASSERT_TRUE(status.ok()) << status.error().render();
      ASSERT_TRUE(out.equal(tensor.reshape({-1}).narrow(0, begin, end - begin))) << name << " " << begin << " to " << end;
    }
  }
}

}  // namespace phalanx::pieces
