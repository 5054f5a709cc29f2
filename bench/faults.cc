// The same faults of the same PyTorch training under `phalanx run` and under torchrun, side by side: is what went wrong named, how soon is
// the prompt back, what is left on the hosts. Needs root (the test cluster).
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "fault_trial.h"

namespace phalanx::bench {
namespace {

using testbed::InjectedFault;
using Words = std::vector<std::string>;

const std::set<std::string> kQuick = {"exception",    "segfault",  "out-of-memory", "left-early",
                                      "agent-killed", "power-off", "rank-stopped",  "never-entered"};

struct Options {
  Setting setting;
  std::vector<InjectedFault> faults;
  bool json = false;
};

struct Row {
  const InjectedFault* fault;
  Trial ours;
  std::optional<Trial> theirs;  // nothing: torchrun has no such part
};

std::vector<InjectedFault> all_faults() {
  std::vector<InjectedFault> all = testbed::end_faults();
  for (InjectedFault& fault : testbed::stall_faults()) all.push_back(std::move(fault));
  return all;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string seconds_of(const Trial& trial, const Setting& setting) {
  return trial.seconds ? fmt::format("{:.2f} s", *trial.seconds) : fmt::format("> {} s", setting.cap.count() / 1000);
}

std::optional<double> ratio_of(const Row& row) {
  if (!row.theirs || !row.theirs->seconds || !row.ours.seconds) return std::nullopt;
  return *row.theirs->seconds / *row.ours.seconds;
}

// What a user of torchrun has learnt.
std::string verdict_of(const Trial& trial, const InjectedFault& fault, const Setting& setting) {
  if (!trial.seconds && !trial.spoke) return fmt::format("silent for {} s", setting.cap.count() / 1000);
  switch (trial.rank) {
    case Named::kRight: return "right rank";
    case Named::kDisagreed: return "right rank on its own host, h1 blames rank 0";
    case Named::kWrong: return fault.rank < 0 ? "a rank, not the host" : "wrong rank";
    case Named::kNone: return "no rank, no host";
  }
  return "";
}

void print_head() {
  fmt::print("\n{:<20} {:<3} {:<30} {:>8} {:>4}   {:<3} {:<44} {:>8} {:>4} {:>7}\n", "", "", "phalanx says", "prompt", "left", "",
             "torchrun says", "prompt", "left", "ratio");
}

void print_row(const Row& row, const Setting& setting) {
  auto yes = [](const Trial& t) { return t.named ? "yes" : "no"; };
  fmt::print("{:<20} {:<3} {:<30} {:>8} {:>4}   ", row.fault->name, yes(row.ours), row.ours.says, seconds_of(row.ours, setting),
             row.ours.left.size());
  if (row.theirs) {
    std::optional<double> ratio = ratio_of(row);
    fmt::print("{:<3} {:<44} {:>8} {:>4} {:>7}\n", yes(*row.theirs), verdict_of(*row.theirs, *row.fault, setting),
               seconds_of(*row.theirs, setting), row.theirs->left.size(), ratio ? fmt::format("{:.1f}×", *ratio) : "-");
  } else {
    fmt::print("{:<3} {}\n", "-", "has no such process");
  }
  std::fflush(stdout);
}

struct Totals {
  int of = 0, named = 0, own_host = 0, ended = 0, clean = 0;
  double median_s = 0;  // of those that ended
};

template <typename Get>
Totals total(const std::vector<Row>& rows, Get get) {
  Totals totals;
  std::vector<double> seconds;
  for (const Row& row : rows) {
    const Trial* trial = get(row);
    if (!trial) continue;
    ++totals.of;
    totals.named += trial->named;
    totals.own_host += trial->rank == Named::kDisagreed;
    totals.clean += trial->left.empty();
    if (trial->seconds) seconds.push_back(*trial->seconds);
  }
  totals.ended = static_cast<int>(seconds.size());
  totals.median_s = median(seconds);
  return totals;
}

const Trial* ours(const Row& row) { return &row.ours; }
const Trial* theirs(const Row& row) { return row.theirs ? &*row.theirs : nullptr; }

std::vector<double> ratios(const std::vector<Row>& rows) {
  std::vector<double> values;
  for (const Row& row : rows)
    if (auto ratio = ratio_of(row)) values.push_back(*ratio);
  return values;
}

void print_totals(const std::vector<Row>& rows, const Setting& setting) {
  auto line = [](const char* name, const Totals& t) {
    std::string median = t.ended > 0 ? fmt::format(" (median {:.2f} s)", t.median_s) : "";
    fmt::print("{:<9} named {} of {}; ended by itself {} times{}; nothing left {} times\n", name, t.named, t.of, t.ended, median, t.clean);
  };
  Totals peer = total(rows, theirs);
  fmt::print("\n");
  line("phalanx", total(rows, ours));
  if (peer.of == 0) return;
  line("torchrun", peer);
  fmt::print(
      "torchrun named the right rank on its own host while the other host blamed its own: {} times; not ended after {} s: {} times\n",
      peer.own_host, setting.cap.count() / 1000, peer.of - peer.ended);
  std::vector<double> all = ratios(rows);
  if (!all.empty())
    fmt::print("where both ended by themselves ({} faults), torchrun took {:.1f} times as long in the median\n", all.size(), median(all));
}

base::Json to_json(const Trial& trial) {
  base::Json json = {{"named", trial.named}, {"says", trial.says}, {"spoke", trial.spoke}, {"left", trial.left}};
  json["seconds"] = trial.seconds ? base::Json(*trial.seconds) : base::Json();
  return json;
}

base::Json to_json(const Totals& t) {
  return {{"faults", t.of},   {"named", t.named},        {"named_on_own_host_only", t.own_host},
          {"ended", t.ended}, {"nothing_left", t.clean}, {"median_s", t.median_s}};
}

base::Json to_json(const std::vector<Row>& rows, const Setting& setting, const char* system) {
  base::Json list = base::Json::array();
  for (const Row& row : rows) {
    base::Json one = {{"fault", row.fault->name}, {"phalanx", to_json(row.ours)}};
    one["torchrun"] = row.theirs ? to_json(*row.theirs) : base::Json();
    if (row.theirs) one["torchrun"]["verdict"] = verdict_of(*row.theirs, *row.fault, setting);
    list.push_back(std::move(one));
  }
  return {{"schema", 1},
          {"bench", "faults"},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"linux", system},
          {"cap_s", setting.cap.count() / 1000},
          {"rows", std::move(list)},
          {"phalanx", to_json(total(rows, ours))},
          {"torchrun", to_json(total(rows, theirs))},
          {"median_ratio", median(ratios(rows))}};
}

int run(const Options& options) {
  utsname system{};
  ::uname(&system);
  if (!options.json) {
    fmt::print(
        "faults: two hosts, one rank of a PyTorch training (gloo) on each; what goes wrong is rank 1 or its host h2; {} cores, Linux {}\n"
        "prompt: from the fault until every terminal has its prompt back; after {} s Ctrl-C is pressed.\n"
        "left: processes {} s after the end, or {} s after Ctrl-C. Where a rank only hangs, phalanx runs with --stall {}s --on-stall "
        "stop.\n"
        "torchrun is started on both hosts at once, as from two terminals; it names a rank when no host's report blames another.\n",
        ::sysconf(_SC_NPROCESSORS_ONLN), system.release, options.setting.cap.count() / 1000, kGone.count() / 1000,
        (kInterrupt + kGone).count() / 1000, testbed::kStallAfter.count() / 1000);
    print_head();
  }
  std::vector<Row> rows;
  int failed = 0;
  auto complain = [&](const InjectedFault& fault, const base::Error& error) {
    fmt::print(stderr, "bench faults: {} is left out:\n{}\n", fault.name, error.render());
    ++failed;
  };
  for (const InjectedFault& fault : options.faults) {
    Row row{&fault, {}, {}};
    base::Result<Trial> trial = under_phalanx(options.setting, fault);
    if (!trial.ok()) {
      complain(fault, trial.error());
      continue;
    }
    row.ours = std::move(trial).value();
    if (!fault.only_ours) {
      base::Result<Trial> other = under_torchrun(options.setting, fault);
      if (!other.ok()) {
        complain(fault, other.error());
        continue;
      }
      row.theirs = std::move(other).value();
    }
    if (!options.json) print_row(row, options.setting);
    rows.push_back(std::move(row));
  }
  if (options.json) fmt::print("{}\n", base::to_text(to_json(rows, options.setting, system.release), 1));
  else print_totals(rows, options.setting);
  return failed == 0 ? 0 : 1;
}

int usage(const std::string& what) {
  fmt::print(stderr, "error: {}\nusage: faults [--quick] [--json] [--only NAME,…] [--cap SECONDS] PHALANX SCRIPTS\nfaults:", what);
  for (const InjectedFault& fault : all_faults()) fmt::print(stderr, " {}", fault.name);
  fmt::print(stderr, "\n");
  return 2;
}

// Keeps the faults with these names. False: there is one without a fault.
bool keep(std::vector<InjectedFault>& faults, const std::set<std::string>& names) {
  std::erase_if(faults, [&](const InjectedFault& fault) { return !names.contains(fault.name); });
  return faults.size() == names.size();
}

// What is wrong with the command line, or nothing.
std::optional<std::string> parse(const Words& args, Options& options) {
  options.faults = all_faults();
  Words files;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& a = args[i];
    bool more = i + 1 < args.size();
    if (a == "--quick") {
      keep(options.faults, kQuick);
    } else if (a == "--json") {
      options.json = true;
    } else if (a == "--only" && more) {
      std::set<std::string> names;
      for (std::string_view name : base::split(args[++i], ',')) names.emplace(name);
      options.faults = all_faults();
      if (!keep(options.faults, names)) return "--only " + args[i] + ": not all of these are faults";
    } else if (a == "--cap" && more) {
      auto cap = base::parse_int(args[++i], 10, 3600);
      if (!cap.ok()) return "--cap takes 10 to 3600 seconds, not '" + args[i] + "'";
      options.setting.cap = std::chrono::seconds(*cap);
    } else if (a.starts_with("--")) {
      return a + (more ? " is unknown" : " is unknown, or lacks its value");
    } else {
      files.push_back(a);
    }
  }
  if (files.size() != 2) return "PHALANX and SCRIPTS are missing";
  options.setting.phalanx = files[0];
  options.setting.scripts = files[1];
  return std::nullopt;
}

}  // namespace
}  // namespace phalanx::bench

using namespace phalanx;

int main(int argc, char** argv) {
  bench::Options options;
  if (auto wrong = bench::parse({argv + 1, argv + argc}, options)) return bench::usage(*wrong);
  if (auto reason = testbed::unavailable()) {
    fmt::print(stderr, "bench faults: skipped: {}\n", *reason);
    return 0;
  }
  if (std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") != 0) {
    fmt::print(stderr, "bench faults: skipped: no torch for /usr/bin/python3 (package python3-torch)\n");
    return 0;
  }
  return bench::run(options);
}
