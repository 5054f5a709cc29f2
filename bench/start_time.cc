// Time from Enter to the ranks' first lines and back to the prompt, of phalanx and its peers, side by side. Runs on the launching
// host of a test cluster (bench/start.sh makes one); the hosts are h1, h2, …
//
// The machine may be busy with other things. So the methods take turns, and a ratio is the median of the ratios to the floor of
// the same round; processor time of the whole cluster is shown beside the clock, since on few cores it decides.
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "os/files.h"
#include "start_methods.h"

namespace phalanx::bench {
namespace {

struct Sample {
  Trial trial;
  double here_s = 0, cluster_s = 0;
};  // processor time

struct Row {
  const Method* method;
  std::vector<std::optional<Sample>> rounds;  // none: failed
};

struct Options {
  Setting setting;
  std::vector<int> sizes{1, 2, 8, 32, 64};
  int rounds = 5;
  bool json = false;
  std::string only;  // methods whose name contains it, and their floors
};

double seconds(os::nanoseconds d) { return static_cast<double>(d.count()) / 1e9; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Until the processes of the trial before are gone at both ends: the cluster uses no processor time to speak of.
void await_quiet() {
  constexpr double kQuiet = 0.002;
  double before = processor_time().cluster_s;
  for (int i = 0; i < 50; ++i) {
    timespec pause{0, 100'000'000};
    ::nanosleep(&pause, nullptr);
    double now = processor_time().cluster_s;
    if (now - before < kQuiet) return;
    before = now;
  }
}

base::Result<Sample> measure(const Method& method, int hosts) {
  if (method.before) TRY(method.before(hosts));
  await_quiet();
  ProcessorTime before = processor_time();
  base::Result<Trial> trial = run_trial(method.launch(hosts), std::max(1, hosts));
  await_quiet();
  ProcessorTime after = processor_time();
  if (method.after) TRY(method.after(hosts));
  if (!trial.ok()) return std::move(trial).error();
  return Sample{*trial, after.here_s - before.here_s, after.cluster_s - before.cluster_s};
}

// hosts: 0 is this machine, without ssh.
std::vector<Row> measure_all(const Options& options, const std::vector<Method>& all, int hosts) {
  std::vector<Row> rows;
  auto named = [&](const Method& m) { return m.name.find(options.only) != std::string::npos; };
  for (const Method& m : all) {
    bool wanted =
        named(m) || (m.floor && std::any_of(all.begin(), all.end(), [&](const Method& o) { return o.group == m.group && named(o); }));
    if ((m.group == Group::kLocal) == (hosts == 0) && hosts <= m.most_hosts && wanted) rows.push_back({&m, {}});
  }
  std::set<std::string> told;
  auto complain = [&](const Method& m, const base::Error& e) {
    if (told.insert(m.name).second) fmt::print(stderr, "bench start: {} on {} hosts: {}: {}\n", m.name, hosts, e.message, e.cause);
  };
  auto arrange = [&](auto action) {
    for (Row& row : rows)
      if (auto& act = row.method->*action) {
        base::Status done = act(hosts);
        if (!done.ok()) complain(*row.method, done.error());
      }
  };
  arrange(&Method::open);
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows[(i + static_cast<size_t>(round)) % rows.size()];
      base::Result<Sample> sample = measure(*row.method, hosts);
      if (!sample.ok()) complain(*row.method, sample.error());
      row.rounds.push_back(sample.ok() ? std::optional(*sample) : std::nullopt);
    }
  }
  arrange(&Method::close);
  return rows;
}

template <typename Get>
double median_of(const Row& row, Get get) {
  std::vector<double> values;
  for (const auto& sample : row.rounds)
    if (sample) values.push_back(get(*sample));
  return median(std::move(values));
}

template <typename Get>
double ratio_of(const Row& row, const Row& floor, Get get) {
  std::vector<double> values;
  for (size_t i = 0; i < row.rounds.size(); ++i)
    if (row.rounds[i] && floor.rounds[i]) values.push_back(get(*row.rounds[i]) / get(*floor.rounds[i]));
  return median(std::move(values));
}

double first(const Sample& s) { return seconds(s.trial.first); }
double last(const Sample& s) { return seconds(s.trial.last); }
double prompt(const Sample& s) { return seconds(s.trial.prompt); }
double whole(const Sample& s) { return seconds(s.trial.whole); }
double here(const Sample& s) { return s.here_s; }
double cluster(const Sample& s) { return s.cluster_s; }

const Row* floor_of(const std::vector<Row>& rows, Group group) {
  for (const Row& row : rows)
    if (row.method->group == group && row.method->floor) return &row;
  return nullptr;
}

void print_table(const std::vector<Row>& rows, int hosts) {
  std::string title = hosts == 0 ? "this machine, no ssh" : fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s");
  fmt::print("\n{:<34} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>9} {:>7}\n", title, "first", "last", "×floor", "prompt", "whole", "×floor",
             "CPU", "×floor");
  Group group = hosts == 0 ? Group::kLocal : Group::kCold;
  for (const Row& row : rows) {
    if (row.method->group != group) fmt::print("\n");
    group = row.method->group;
    const Row& floor = *floor_of(rows, group);
    if (median_of(row, whole) == 0) {
      fmt::print("{:<34} failed\n", row.method->name);
      continue;
    }
    fmt::print("{:<34} {:>7.4f} s {:>7.4f} s {:>6.2f}× {:>7.4f} s {:>7.4f} s {:>6.2f}× {:>7.3f} s {:>6.2f}×\n", row.method->name,
               median_of(row, first), median_of(row, last), ratio_of(row, floor, last), median_of(row, prompt), median_of(row, whole),
               ratio_of(row, floor, whole), median_of(row, cluster), ratio_of(row, floor, cluster));
  }
  std::fflush(stdout);
}

base::Json to_json(const std::vector<Row>& rows, int hosts) {
  base::Json list = base::Json::array();
  for (const Row& row : rows) {
    const Row& floor = *floor_of(rows, row.method->group);
    const char* group = row.method->group == Group::kCold ? "cold" : row.method->group == Group::kWarm ? "warm" : "local";
    base::Json samples = base::Json::array();
    for (const auto& s : row.rounds)
      samples.push_back(s ? base::Json{{"first_s", first(*s)},
                                       {"last_s", last(*s)},
                                       {"prompt_s", prompt(*s)},
                                       {"whole_s", whole(*s)},
                                       {"cpu_s", cluster(*s)},
                                       {"cpu_here_s", here(*s)}}
                          : base::Json());
    list.push_back({{"hosts", hosts},
                    {"group", group},
                    {"method", row.method->name},
                    {"floor", row.method->floor},
                    {"first_s", median_of(row, first)},
                    {"last_s", median_of(row, last)},
                    {"prompt_s", median_of(row, prompt)},
                    {"whole_s", median_of(row, whole)},
                    {"cpu_s", median_of(row, cluster)},
                    {"cpu_here_s", median_of(row, here)},
                    {"last_ratio", ratio_of(row, floor, last)},
                    {"whole_ratio", ratio_of(row, floor, whole)},
                    {"cpu_ratio", ratio_of(row, floor, cluster)},
                    {"rounds", std::move(samples)}});
  }
  return list;
}

int run(const Options& options) {
  utsname system{};
  ::uname(&system);
  long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::vector<Method> all = methods(options.setting);
  base::Json report = {{"schema", 1}, {"bench", "start"}, {"cores", cores}, {"linux", system.release}, {"rounds", options.rounds}};
  report["rows"] = base::Json::array();
  if (!options.json)
    fmt::print(
        "start: one rank per host that prints one line and ends; medians of {} rounds that take turns; {} cores, Linux {}\n"
        "first, last: from Enter to the first and the last rank's line. prompt: from the last rank's end to the prompt.\n"
        "×floor: median of the ratios to the first line of the same block in the same round. CPU: of launcher and hosts together.\n",
        options.rounds, cores, system.release);
  std::vector<int> sizes = options.sizes;
  sizes.insert(sizes.begin(), 0);
  for (int hosts : sizes) {
    std::vector<Row> rows = measure_all(options, all, hosts);
    if (rows.empty()) continue;
    if (!options.json) print_table(rows, hosts);
    for (base::Json& row : to_json(rows, hosts)) report["rows"].push_back(std::move(row));
  }
  if (options.json) fmt::print("{}\n", base::to_text(report, 1));
  return 0;
}

int usage() {
  fmt::print(stderr, "usage: start_time [--quick] [--json] [--rounds N] [--hosts 1,2,8] [--only METHOD] PHALANX RANK\n");
  return 2;
}

std::optional<Options> parse(const Words& args) {
  Options options;
  Words files;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& a = args[i];
    bool more = i + 1 < args.size();
    if (a == "--quick") {
      options.sizes = {1, 2, 8};
      options.rounds = 3;
    } else if (a == "--json") options.json = true;
    else if (a == "--rounds" && more) options.rounds = static_cast<int>(base::parse_int(args[++i], 1, 1000).ok() ? std::stoi(args[i]) : 0);
    else if (a == "--only" && more) options.only = args[++i];
    else if (a == "--hosts" && more) {
      options.sizes.clear();
      for (std::string_view field : base::split(args[++i], ',')) {
        auto count = base::parse_int(field, 1, 250);
        if (!count.ok()) return std::nullopt;
        options.sizes.push_back(static_cast<int>(*count));
      }
    } else if (a.starts_with("--")) return std::nullopt;
    else files.push_back(a);
  }
  if (files.size() != 2 || options.rounds == 0) return std::nullopt;
  options.setting.phalanx = files[0];
  options.setting.rank = files[1];
  return options;
}

}  // namespace
}  // namespace phalanx::bench

using namespace phalanx;

int main(int argc, char** argv) {
  std::optional<bench::Options> options = bench::parse({argv + 1, argv + argc});
  if (!options) return bench::usage();
  char folder[] = "/tmp/pb-XXXXXX";
  if (!::mkdtemp(folder)) return 1;
  options->setting.folder = folder;
  int code = bench::run(*options);
  bench::Launch tidy{{{"rm", "-rf", folder}}, {}};
  return bench::run_quietly(tidy).ok() ? code : 1;
}
