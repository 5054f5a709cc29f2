// Watches a run that starts no rank: nothing is shown but what takes long, on stderr.
#pragma once

#include <cstdio>

#include "job/narrate.h"
#include "job/runner.h"

namespace phalanx::cli {

class QuietWatcher : public job::Audience {
 public:
  explicit QuietWatcher(base::Language language) : language_(language) {}
  void output(const job::State&, const wire::Output&, int64_t) override {}
  void progress(const job::State&, int, const wire::RankProgress&) override {}
  void note(const job::State& state, const job::Note& note) override {
    std::fputs(("phalanx: " + job::narrate(state, note, language_) + "\n").c_str(), stderr);
  }
  void event(const job::State&, const job::Event&) override {}

 private:
  base::Language language_;
};

}  // namespace phalanx::cli
