// The pictures of the READMEs, taken from real runs on a test cluster: pictures FOLDER. `cmake --build build/train --target pictures`.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "base/try.h"
#include "cluster.h"
#include "term_svg/picture.h"

using namespace phalanx;

namespace {

using std::chrono::seconds;

// Puts examples/train.py into the user's home on every host.
base::Status copy_script(const testbed::Cluster& cluster) {
  std::ifstream in(PICTURES_SOURCE_DIR "/examples/train.py", std::ios::binary);
  std::string script{std::istreambuf_iterator<char>(in), {}};
  for (const char* host : {"ctl", "gpu01", "gpu02"}) {
    testbed::Outcome outcome = cluster.run_on(host, {.argv = {"tee", "train.py"}, .input = script});
    if (outcome.exit_code != 0) return base::fail(base::ErrorKind::kInternal, fmt::format("train.py to {}: {}", host, outcome.err));
  }
  return base::ok();
}

constexpr size_t kColumns = 100;  // as the cluster's terminals

struct Scene {
  std::string file;
  std::string typed;          // what the user types, beside train.py
  size_t head = 0, tail = 0;  // rows kept where there are more, with a mark between; 0: all
  std::string until;          // a pattern: the picture is taken when it has been shown; empty: when the command has ended
};

const std::vector<Scene> kScenes = {
    {"run.svg", "phalanx run -H gpu01:2,gpu02:2 -- python train.py --steps 300", 0, 0, " 6[0-9]% "},
    {"failure.svg", "phalanx run -H gpu01:2,gpu02:2 -- python train.py --fail-rank 3", 10, 14, ""},
};

testbed::Command command_of(const Scene& scene) {
  testbed::Command command{.argv = {"bash", "-c", scene.typed}, .stdio = testbed::Command::kTerminal};
  command.env = {
      {"PATH", PICTURES_PROGRAM_DIR ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"TERM", "xterm-256color"}, {"LANG", "C.UTF-8"}};
  return command;
}

bool wait_shown(testbed::Process& process, const Scene& scene) {
  if (scene.until.empty()) return process.wait(seconds(60));
  std::regex pattern(scene.until);
  auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (!std::regex_search(process.out(), pattern)) {
    if (std::chrono::steady_clock::now() > deadline || process.wait(testbed::milliseconds(20))) return false;
  }
  return true;
}

std::vector<term_svg::Row> crop(std::vector<term_svg::Row> rows, const Scene& scene) {
  if (scene.tail == 0 || rows.size() <= scene.head + scene.tail + 1) return rows;
  auto from = rows.begin() + static_cast<std::ptrdiff_t>(scene.head);
  rows.erase(from, rows.end() - static_cast<std::ptrdiff_t>(scene.tail));
  rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(scene.head), term_svg::Row{{"⋮", {.dim = true}}});
  return rows;
}

base::Result<std::string> take(const testbed::Cluster& cluster, const Scene& scene) {
  TRY_ASSIGN(testbed::Process process, cluster.start_on("ctl", command_of(scene)));
  term_svg::Screen screen(kColumns);
  screen.feed(fmt::format("\x1b[1m$ {}\x1b[0m\r\n", scene.typed));
  if (!wait_shown(process, scene))
    return base::fail(base::ErrorKind::kTimeout, fmt::format("{}: not shown in time:\n{}", scene.file, process.out()));
  screen.feed(process.out());
  if (scene.until.empty()) screen.feed(fmt::format("\r\x1b[1m$ echo $?\x1b[0m\r\n{}", process.finish(testbed::milliseconds(0)).exit_code));
  return to_svg(crop(screen.rows(), scene), kColumns, "phalanx");
}

base::Status take_all(const std::string& folder) {
  testbed::Options options;
  for (const char* name : {"gpu01", "gpu02"}) options.host.emplace_back().name = name;
  TRY_ASSIGN(testbed::Cluster cluster, testbed::Cluster::up(options));
  TRY(copy_script(cluster));
  // The first run also deploys; the pictures show every later one.
  cluster.run_on("ctl", command_of({.file = {}, .typed = "phalanx run -H gpu01,gpu02 -- true", .until = {}}), seconds(60));
  for (const Scene& scene : kScenes) {
    TRY_ASSIGN(std::string svg, take(cluster, scene));
    std::ofstream(folder + "/" + scene.file, std::ios::binary) << svg;
    fmt::print("{}/{}\n", folder, scene.file);
  }
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: pictures FOLDER\n");
    return 2;
  }
  base::Status status = take_all(argv[1]);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}", status.error().render());
  return base::exit_code(status.error().kind);
}
