// simulate [--runs N] [--from SEED] [--seed SEED [--trace]] [--seeds FILE]: plays simulated runs; exit 1 if an invariant broke.
// simulate --stages N [--cell FAULT/STAGE [--seed SEED [--trace]]]: N runs for each fault in each stage of a run; exit 1 also if a fault
// never came to strike in one of them. simulate --hosts N: one run on so many hosts with 8 ranks each, in which one rank fails.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "os/clock.h"
#include "world.h"

using namespace phalanx;

namespace {

struct Totals {
  int64_t runs = 0, events = 0, attempts = 0, failed = 0, deadlocks = 0, stragglers = 0, losses = 0;
  std::map<int, int64_t> kinds;
};

// Returns whether a fault that is tied to a stage has struck in it.
bool play(const sim::Scenario& scenario, bool trace, const std::string& replay, Totals& totals) {
  if (trace) std::fputs(sim::describe(scenario).c_str(), stdout);
  sim::Report report = sim::World(scenario, trace).play();
  ++totals.runs;
  totals.events += report.events;
  totals.attempts += report.attempts;
  totals.deadlocks += report.deadlocks;
  totals.stragglers += report.stragglers;
  totals.losses += report.losses;
  if (report.verdict) ++totals.kinds[static_cast<int>(report.verdict->kind)];
  if (report.problems.empty()) return report.struck_in_stage;
  ++totals.failed;
  if (totals.failed > 10 && !trace) return report.struck_in_stage;
  std::fputs(sim::describe(scenario).c_str(), stdout);
  for (const std::string& problem : report.problems) std::printf("  %s\n", problem.c_str());
  std::printf("  replay: %s --seed %llu --trace\n", replay.c_str(), static_cast<unsigned long long>(scenario.seed));
  return report.struck_in_stage;
}

// `cell`: "FAULT/STAGE", or empty for all.
void play_stages(const std::vector<uint64_t>& seeds, const std::string& cell, bool trace, const std::string& program, Totals& totals) {
  for (sim::Stage stage : sim::kStages)
    for (sim::Fault::Kind kind : sim::kInAnyStage) {
      const std::string name = fmt::format("{}/{}", sim::name(kind), sim::name(stage));
      if (!cell.empty() && cell != name) continue;
      size_t struck = 0;
      for (uint64_t seed : seeds)
        struck += play(sim::make_stage_scenario(kind, stage, seed), trace, program + " --stages 1 --cell " + name, totals);
      if (trace || struck * 4 >= seeds.size()) continue;  // some runs end before it
      ++totals.failed;
      std::printf("%s struck in %zu of %zu runs\n", name.c_str(), struck, seeds.size());
    }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t from = 1, runs = 20'000, hosts = 0, stages = 0;
  bool trace = false, one = false;
  std::string cell;
  std::vector<uint64_t> seeds;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--trace") trace = true;
    else if (word == "--runs") runs = std::strtoull(value, nullptr, 10), ++i;
    else if (word == "--hosts") hosts = std::strtoull(value, nullptr, 10), one = true, ++i;
    else if (word == "--stages") stages = std::strtoull(value, nullptr, 10), ++i;
    else if (word == "--cell") cell = value, ++i;
    else if (word == "--from") from = std::strtoull(value, nullptr, 10), ++i;
    else if (word == "--seed") seeds.push_back(std::strtoull(value, nullptr, 10)), one = true, ++i;
    else if (word == "--seeds") {
      std::ifstream file(value);
      if (!file) return std::fprintf(stderr, "error: cannot read %s\n", value), 2;
      for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
      ++i;
    } else {
      return std::fprintf(stderr,
                          "error: %s is no option: [--runs N] [--from SEED] [--seed SEED [--trace]] [--seeds FILE] [--hosts N] "
                          "[--stages N [--cell FAULT/STAGE]]\n",
                          word.c_str()),
             2;
    }
  }
  os::Mono began = os::mono_now();
  Totals totals;
  if (stages > 0) {
    for (uint64_t seed = 1; seed <= stages && !one; ++seed) seeds.push_back(seed);
    play_stages(seeds, cell, trace, argv[0], totals);
    seeds.clear();
    one = true;
  }
  if (hosts > 0) play(sim::big_scenario(hosts), trace, argv[0], totals);
  for (uint64_t seed : seeds) play(sim::make_scenario(seed), trace, argv[0], totals);
  for (uint64_t i = 0; i < runs && !one; ++i) play(sim::make_scenario(from + i), false, argv[0], totals);
  double seconds = static_cast<double>((os::mono_now() - began).count()) / 1e9;
  std::printf("%lld runs, %lld attempts, %lld events in %.1f s; %lld broke an invariant\n", static_cast<long long>(totals.runs),
              static_cast<long long>(totals.attempts), static_cast<long long>(totals.events), seconds,
              static_cast<long long>(totals.failed));
  constexpr const char* kKinds[] = {"done", "planned", "checked", "refused", "rank failed", "host lost", "interrupted", "hung"};
  for (const auto& [kind, count] : totals.kinds) std::printf("  %-12s %lld\n", kKinds[kind], static_cast<long long>(count));
  std::printf("  %lld deadlocks proved, %lld stragglers and %lld hosts that lose packets named\n", static_cast<long long>(totals.deadlocks),
              static_cast<long long>(totals.stragglers), static_cast<long long>(totals.losses));
  if (!one && runs >= 10'000 && std::min({totals.deadlocks, totals.stragglers, totals.losses}) == 0)
    return std::printf("of one of these there was none in any of the runs\n"), 1;
  return totals.failed > 0 ? 1 : 0;
}
