// Trainings that go on, each on hosts of its own, many at once: what `phalanx run` says of them by default. Faults and slow ones are to be
// named in time; healthy ones are to be left in peace. Used by the tests, which take some of each, and by `./x bench faults --live`, which
// takes all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster.h"
#include "faults.h"

namespace phalanx::testbed {

struct LiveRow {
  std::string name;                                      // of scripts/behaviour.py or trainer.py
  std::map<std::string, std::string> says{};             // code → the host or rank that is named; empty: healthy
  std::function<base::Status(const Cluster&)> strike{};  // once all train
  int hosts = 2;
  milliseconds most{60'000};  // from the strike, or the first step, to the last of the codes; a healthy one: to its end
  bool trainer = false;       // scripts/trainer.py with FAULT=name; else scripts/behaviour.py
  bool in_tests = false;      // not only in the bench
};

std::vector<LiveRow> proved_rows();   // told within 10 s, though steps or output may never have come
std::vector<LiveRow> slow_rows();     // told within 60 s while they go on
std::vector<LiveRow> healthy_rows();  // nothing is told

struct LiveResult {
  std::string problem;                       // why the row is not as it should be; empty: it is
  std::map<std::string, double> told_after;  // code → seconds
  std::string text;                          // what phalanx said
};
// So many at once. phalanx: the program; scripts: the folder.
std::vector<LiveResult> play(const std::vector<LiveRow>& rows, const std::string& phalanx, const std::string& scripts, size_t at_once = 3);

}  // namespace phalanx::testbed
