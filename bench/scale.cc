// What a launcher costs by the number of its hosts: one real launcher, all agents played by this process (bench/scale.sh).
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "scale_trial.h"

namespace phalanx::scale {
namespace {

struct Options {
  std::vector<int> sizes{64, 256, 1024};
  int ranks = 8;
  os::milliseconds runs{10'000};
  bool json = false;
  std::string phalanx, ssh;
};

// Of one size: a run that ends by a failure, and one that the operator stops.
struct Row {
  int hosts = 0;
  Trial failed, stopped;
};

base::Result<Row> measure(const Options& options, const std::string& folder, int hosts) {
  Row row;
  row.hosts = hosts;
  Wish wish{options.phalanx, options.ssh, folder, hosts, options.ranks, Ending::kFailure, options.runs};
  TRY_ASSIGN(row.failed, run_trial(wish));
  if (row.failed.exit_code != 1)
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("exit code {}", row.failed.exit_code)).because(row.failed.said);
  wish.ending = Ending::kOperator;
  wish.runs = os::milliseconds(1000);
  TRY_ASSIGN(row.stopped, run_trial(wish));
  return row;
}

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void print_row(const Row& row) {
  const Trial& t = row.failed;
  fmt::print(
      "{:>5} {:>6} {:>8.2f} s {:>8.2f} s {:>8.1f} MB {:>9.0f} {:>9.0f} {:>9.0f} {:>8.2f} s {:>8.2f} s {:>8.2f} s {:>8.1f} % {:>8.2f} s\n",
      row.hosts, row.hosts * 8, t.started, t.cpu_start, megabytes(t.peak_bytes), t.start_bytes, t.most_start_bytes, t.bytes, t.told,
      t.ended, row.stopped.ended, 100 * t.cpu_run, t.cpu_end);
  std::fflush(stdout);
}

base::Json to_json(const Trial& t) {
  return {{"started_s", t.started},
          {"told_s", t.told},
          {"ended_s", t.ended},
          {"cpu_start_s", t.cpu_start},
          {"cpu_run", t.cpu_run},
          {"cpu_end_s", t.cpu_end},
          {"peak_bytes", t.peak_bytes},
          {"start_bytes", t.start_bytes},
          {"most_start_bytes", t.most_start_bytes},
          {"bytes", t.bytes},
          {"exit_code", t.exit_code}};
}

// Of the largest size to the smallest: 1 where the cost per host is constant.
void print_growth(const Row& small, const Row& large) {
  auto per_host = [&](auto get) { return get(large) / get(small) * small.hosts / large.hosts; };
  fmt::print(
      "\n{} hosts against {}, per host: bytes to the start {:.2f}×, bytes {:.2f}×, processor time to the start {:.2f}×, memory {:.2f}×\n",
      large.hosts, small.hosts, large.failed.start_bytes / small.failed.start_bytes, large.failed.bytes / small.failed.bytes,
      per_host([](const Row& r) { return r.failed.cpu_start; }),
      per_host([](const Row& r) { return static_cast<double>(r.failed.peak_bytes); }));
}

int run(const Options& options, const std::string& folder) {
  base::Status limits = set_limits(*std::max_element(options.sizes.begin(), options.sizes.end()));
  if (!limits.ok()) return std::fprintf(stderr, "%s", limits.error().render().c_str()), 1;
  Wish any{options.phalanx, options.ssh, folder};
  utsname system{};
  ::uname(&system);
  long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  base::Json report = {{"cores", cores}, {"kernel", system.release}, {"ranks_per_host", options.ranks}, {"rows", base::Json::array()}};
  if (!options.json)
    fmt::print(
        "scale: one launcher, {} ranks per host, all agents in one process of the same machine; {} cores, Linux {}\n"
        "start: until every agent was told to start its ranks. bytes: sent per host, mean and most until the start, and in the whole run.\n"
        "told, ended: from one rank's failure to the first words of it and to the exit. stop: from SIGINT to the exit. CPU: the "
        "launcher's.\n\n"
        "{:>5} {:>6} {:>10} {:>10} {:>11} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        options.ranks, cores, system.release, "hosts", "ranks", "start", "CPU", "memory", "bytes", "most", "all", "told", "ended", "stop",
        "CPU runs", "CPU ends");
  std::vector<Row> rows;
  for (int hosts : options.sizes) {
    base::Result<Row> row = measure(options, folder, hosts);
    if (!row.ok()) return std::fprintf(stderr, "bench scale: %d hosts: %s", hosts, row.error().render().c_str()), 1;
    if (!options.json) print_row(*row);
    report["rows"].push_back({{"hosts", hosts}, {"failure", to_json(row->failed)}, {"stop", to_json(row->stopped)}});
    rows.push_back(std::move(row).value());
  }
  if (options.json) fmt::print("{}\n", base::to_text(report, 1));
  else if (rows.size() > 1) print_growth(rows.front(), rows.back());
  return 0;
}

std::optional<Options> parse(const std::vector<std::string>& args) {
  Options options;
  std::vector<std::string> files;
  auto number = [](std::string_view text, int64_t most) {
    auto value = base::parse_int(text, 1, most);
    return value.ok() ? static_cast<int>(*value) : 0;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& a = args[i];
    bool more = i + 1 < args.size();
    if (a == "--json") options.json = true;
    else if (a == "--quick") options.sizes = {16, 64, 128}, options.runs = os::milliseconds(2000);
    else if (a == "--ranks" && more) options.ranks = number(args[++i], 64);
    else if (a == "--hosts" && more) {
      options.sizes.clear();
      for (std::string_view field : base::split(args[++i], ',')) options.sizes.push_back(number(field, 9999));
    } else if (a.starts_with("--")) return std::nullopt;
    else files.push_back(a);
  }
  bool sizes = !options.sizes.empty() && std::all_of(options.sizes.begin(), options.sizes.end(), [](int n) { return n > 0; });
  if (files.size() != 2 || !sizes || options.ranks == 0) return std::nullopt;
  options.phalanx = files[0];
  options.ssh = files[1];
  return options;
}

}  // namespace
}  // namespace phalanx::scale

using namespace phalanx;

int main(int argc, char** argv) {
  std::optional<scale::Options> options = scale::parse({argv + 1, argv + argc});
  if (!options) return std::fprintf(stderr, "usage: scale [--quick] [--json] [--hosts 64,256,1024] [--ranks N] PHALANX STAND_IN\n"), 2;
  std::string folder = std::filesystem::temp_directory_path().string() + "/phalanx-scale-XXXXXX";
  if (!::mkdtemp(folder.data())) return std::fprintf(stderr, "error: cannot make a folder %s\n", folder.c_str()), 1;
  int code = scale::run(*options, folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
