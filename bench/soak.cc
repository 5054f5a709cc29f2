// soak [--runs N] [--seed S] FOLDER PHALANX CORPUS: trainings of the engine on 4 hosts × 2 ranks that lose a host at a random step, one
// after another; each must end by itself, with the loss of an undisturbed run, and leave nothing. One line a run; exit 1 if one did not.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "elastic.h"

using namespace phalanx;

namespace {

constexpr double kBound = 1e-3;  // of the loss, absolute

int usage() {
  std::fprintf(stderr, "usage: soak [--runs N] [--seed S] FOLDER PHALANX CORPUS\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 50;
  uint64_t seed = 1;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--runs" && i + 1 < argc) runs = std::atoi(argv[++i]);
    else if (word == "--seed" && i + 1 < argc) seed = std::strtoull(argv[++i], nullptr, 10);
    else words.push_back(word);
  }
  if (words.size() != 3) return usage();
  if (auto why = testbed::unavailable()) {
    std::fprintf(stderr, "error: no cluster can be made here: %s\n", why->c_str());
    return 2;
  }
  testbed::ElasticTraining training(words[0], words[1], words[2]);
  std::mt19937_64 dice(seed);
  auto below = [&](uint64_t n) { return dice() % n; };
  double reference = 0;
  int bad = 0, spares = 0;
  std::map<std::string, int> blows;
  for (int run = 0; run <= runs; ++run) {
    base::Result<testbed::Cluster> cluster = testbed::Cluster::up({.hosts = 5});
    if (!cluster.ok()) return std::fprintf(stderr, "error: %s\n", cluster.error().message.c_str()), 2;
    if (run == 0) {
      testbed::TrialResult undisturbed = training.undisturbed(*cluster);
      reference = undisturbed.loss;
      std::printf("undisturbed: exit code %d, loss %.6f\n", undisturbed.exit_code, reference);
      if (undisturbed.exit_code != 0) return std::fprintf(stderr, "%s", undisturbed.talk.c_str()), 1;
      continue;
    }
    testbed::Trial trial;
    trial.blow = static_cast<testbed::Blow>(below(testbed::kBlows));
    trial.host = "h" + std::to_string(1 + below(4));
    trial.step = 5 * static_cast<int64_t>(1 + below(testbed::ElasticTraining::kSteps / 5 - 2));
    trial.spare = below(2) == 0;
    testbed::TrialResult result = training.disturbed(*cluster, trial);
    bool good = result.ended && result.exit_code == 0 && std::abs(result.loss - reference) <= kBound && result.left.empty();
    std::printf("%3d  %-18s %s at step %3lld, %-11s: exit code %d, resumed behind %3lld, loss %.6f, %5.1f s%s\n", run, name(trial.blow),
                trial.host.c_str(), static_cast<long long>(trial.step), trial.spare ? "spare" : "three hosts", result.exit_code,
                static_cast<long long>(result.resumed), result.loss, result.seconds, good ? "" : "  WRONG");
    std::fflush(stdout);
    if (!good) std::printf("%s\nleft: %s\n", result.talk.c_str(), result.left.c_str());
    bad += !good;
    spares += trial.spare;
    ++blows[name(trial.blow)];
  }
  std::printf("%d runs (%d with a spare, %d with three hosts), %d wrong:", runs, spares, runs - spares, bad);
  for (const auto& [blow, count] : blows) std::printf(" %s %d", blow.c_str(), count);
  std::printf("\n");
  return bad > 0;
}
