// The pictures of the READMEs, taken from real runs on a test cluster: pictures FOLDER. `cmake --build build/train --target pictures`.
#include <fmt/format.h>

#include <fstream>

#include "cluster.h"
#include "term_svg/picture.h"

namespace {

using std::chrono::seconds;

constexpr size_t kColumns = 100;  // as the cluster's terminals

struct Scene {
  std::string file;
  std::string typed;  // what the user types, in examples/
  std::string until;  // the picture is taken when this has been shown; empty: when the command has ended
};

const std::vector<Scene> kScenes = {
    {"run.svg", "phalanx run -H gpu01:2,gpu02:2 -- python train.py --steps 300", "200/300"},
    {"failure.svg", "phalanx run -H gpu01:2,gpu02:2 -- python train.py --fail-rank 3", ""},
};

testbed::Command command_of(const Scene& scene) {
  testbed::Command command{
      .argv = {"bash", "-c", scene.typed}, .cwd = PICTURES_SOURCE_DIR "/examples", .stdio = testbed::Command::kTerminal};
  command.env = {
      {"PATH", PICTURES_PROGRAM_DIR ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"TERM", "xterm-256color"}, {"LANG", "C.UTF-8"}};
  return command;
}

base::Result<std::string> take(const testbed::Cluster& cluster, const Scene& scene) {
  TRY_ASSIGN(testbed::Process process, cluster.start_on("ctl", command_of(scene)));
  term_svg::Screen screen(kColumns);
  screen.feed(fmt::format("\x1b[1m$ {}\x1b[0m\r\n", scene.typed));
  bool shown = scene.until.empty() ? process.wait(seconds(60)) : process.wait_output(scene.until, seconds(60));
  if (!shown) return base::fail(base::ErrorKind::kTimeout, fmt::format("{}: not shown in time:\n{}", scene.file, process.out()));
  screen.feed(process.out());
  if (scene.until.empty()) screen.feed(fmt::format("\r\x1b[1m$ echo $?\x1b[0m\r\n{}", process.finish(testbed::milliseconds(0)).exit_code));
  return to_svg(screen, kColumns, "phalanx");
}

base::Status take_all(const std::string& folder) {
  testbed::Options options;
  for (const char* name : {"gpu01", "gpu02"}) options.host.emplace_back().name = name;
  TRY_ASSIGN(testbed::Cluster cluster, testbed::Cluster::up(options));
  // The first run also deploys; the pictures show every later one.
  cluster.run_on("ctl", command_of({"", "phalanx run -H gpu01,gpu02 -- true", ""}), seconds(60));
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
