#include "launcher_fixture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "leftovers.h"

namespace phalanx::testbed {

using namespace std::chrono_literals;

namespace {
constexpr const char* kBystander = "sleep 86401";

std::string joined(const Words& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}
}  // namespace

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void Launcher::SetUp() {
  if (auto reason = unavailable()) GTEST_SKIP() << "no test cluster: " << *reason;
}

void Launcher::start(Options options) {
  auto made = Cluster::up(options);
  ASSERT_TRUE(made.ok()) << made.error().render();
  cluster_ = std::make_unique<Cluster>(std::move(made).value());
  for (const auto& host : cluster_->hosts()) {
    auto process = cluster_->start_on(host, {.argv = {"sleep", "86401"}});
    ASSERT_TRUE(process.ok()) << process.error().render();
    bystanders_.emplace(host, std::move(process).value());
  }
}

void Launcher::TearDown() {
  for (auto& [host, process] : bystanders_) EXPECT_FALSE(process.wait(0ms)) << "another process of the user on " << host << " was ended";
  bystanders_.clear();
}

Command Launcher::run(const Words& args) {
  Words argv = {PHALANX_PROGRAM, "run"};
  if (std::find(args.begin(), args.end(), "--lease") == args.end()) argv.insert(argv.end(), {"--lease", "6s"});  // what is lost ends soon
  argv.insert(argv.end(), args.begin(), args.end());
  return Command{.argv = argv, .cwd = "/tmp"};
}

Outcome Launcher::run_now(const Words& args, milliseconds deadline) { return cluster_->run_on("ctl", run(args), deadline); }

Process Launcher::run_later(const Words& args) {
  auto process = cluster_->start_on("ctl", run(args));
  if (!process.ok()) ADD_FAILURE() << process.error().render();
  return std::move(process).value();
}

std::string Launcher::say(const std::string& host, const std::string& text) {
  Outcome outcome = cluster_->run_on(host, {.argv = {"/bin/bash", "-c", text}});
  EXPECT_EQ(outcome.exit_code, 0) << host << ": " << text << "\n" << outcome;
  return outcome.out;
}

Launcher::Shared Launcher::shared_folder(const std::string& name) {
  const std::string below = fmt::format("/tests/{}-{}", name, ::getpid());
  Shared shared{TESTBED_BINARY_DIR + below, TESTBED_BUILD + below};
  std::filesystem::remove_all(shared.here);
  std::filesystem::create_directories(shared.here);
  return shared;
}

std::string Launcher::leftovers_on(const std::string& host, milliseconds most) {
  return joined(testbed::leftovers(*cluster_, {host}, kBystander, most));
}

std::string Launcher::leftovers(milliseconds most) {
  auto hosts = cluster_->hosts();
  hosts.push_back("ctl");
  return joined(testbed::leftovers(*cluster_, hosts, kBystander, most));
}

std::vector<HostProcess> Launcher::named(const std::string& host, const std::string& name) {
  std::vector<HostProcess> found;
  for (const auto& process : cluster_->processes(host)) {
    if (process.name == name) found.push_back(process);
  }
  return found;
}

void Obeying::launch(const std::string& hosts, const Words& args, const std::vector<std::string>& host_of_rank) {
  host_of_rank_ = host_of_rank;
  Words all = {"-H", hosts};
  all.insert(all.end(), args.begin(), args.end());
  all.insert(all.end(), {"--", script("obey.sh")});
  phalanx_ = std::make_unique<Process>(run_later(all));
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    std::string word = fmt::format("rank {} ready", rank);
    ASSERT_TRUE(phalanx_->wait_output(word, 20s)) << word << " was not seen\n" << phalanx_->finish(0ms);
  }
}

void Obeying::tell(int rank, const std::string& line) {
  const std::string& host = host_of_rank_[static_cast<size_t>(rank)];
  fault();
  Outcome outcome = cluster().run_on(host, {.argv = {"sh", "-c", "printf '%s\\n' \"$1\" > /tmp/tell-$0", std::to_string(rank), line}}, 5s);
  EXPECT_EQ(outcome.exit_code, 0) << "rank " << rank << " does not listen: " << outcome;
}

Obeying::Ended Obeying::ended(milliseconds most) {
  Ended result;
  bool in_time = phalanx_->wait(most);
  std::string events = in_time ? "" : say("ctl", "date +%T.%N; tail -n 20 ~/.local/state/phalanx/runs/latest/events.jsonl");
  result.outcome = phalanx_->finish(milliseconds(0));
  if (!in_time) result.outcome.err += "\n--- what the run had seen\n" + events;
  result.after = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - fault_at_);
  return result;
}

void Obeying::TearDown() {
  phalanx_.reset();
  Launcher::TearDown();
}

}  // namespace phalanx::testbed
