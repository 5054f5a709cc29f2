// Faults that end a rank or a host of a real PyTorch training: the verdict, how soon, and that nothing is left.
#include <sys/stat.h>

#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "faults.h"
#include "launcher_fixture.h"
#include "os/files.h"

namespace testbed {

void PrintTo(const InjectedFault& fault, std::ostream* stream) { *stream << fault.name; }

namespace {

// A memory cgroup of 200 MiB, of version 1 where that is mounted; "" where there is none.
class MemoryGroup {
 public:
  MemoryGroup() {
    for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      std::string limit = os::exists(std::string(root) + "/memory.limit_in_bytes") ? "memory.limit_in_bytes" : "memory.max";
      std::string folder = fmt::format("{}/phalanx-end-test-{}", root, ::getpid());
      if (::mkdir(folder.c_str(), 0700) != 0) continue;
      folder_ = folder;
      std::ofstream(folder + "/" + limit) << 200 * 1024 * 1024;
      if (os::exists(folder + "/" + limit)) return;
      ::rmdir(folder.c_str());
      folder_.clear();
    }
  }
  ~MemoryGroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

class End : public Launcher, public testing::WithParamInterface<InjectedFault> {
 protected:
  static void SetUpTestSuite() { installed_ = std::system("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null") == 0; }
  void SetUp() override {
    Launcher::SetUp();
    if (!IsSkipped() && !installed_) GTEST_SKIP() << "no torch for /usr/bin/python3 (package python3-torch)";
  }
  int64_t struck_at() {
    Outcome outcome = cluster().run_on("h2", Command{{"cat", "/tmp/struck"}});
    return outcome.exit_code == 0 ? std::atoll(outcome.out.c_str()) : 0;
  }
  void wait_for_steps() {
    Instant most = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (const char* host : {"h1", "h2"})
      while (cluster().run_on(host, Command{{"test", "-e", "/tmp/steps"}}).exit_code != 0)
        ASSERT_LT(std::chrono::steady_clock::now(), most) << "no step on " << host;
  }
  static inline bool installed_ = false;
};

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

TEST_P(End, IsNamedAndNothingIsLeft) {
  const InjectedFault& fault = GetParam();
  MemoryGroup group;
  if (fault.name == "out-of-memory" && group.folder().empty()) GTEST_SKIP() << "no memory cgroup can be made here";
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].run.size_kib = 2048;                                        // for disk-full
  if (fault.name == "no-shared-memory") options.host[1].shm.size_kib = 4096;  // a batch is 8 MiB
  start(options);
  if (fault.host_is_gone) forget_bystander("h2");
  Process phalanx =
      run_later({"-H", "h1,h2", "--preflight", "off", "--env", "FAULT=" + (fault.strike ? std::string() : fault.name), "--env",
                 "FAULT_CGROUP=" + group.folder(), "--env", "OMP_NUM_THREADS=1", "--", "/usr/bin/python3", script("trainer.py")});
  int64_t at = 0;
  if (fault.strike) {
    wait_for_steps();
    at = now_ns();
    base::Status done = fault.strike(cluster());
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  Outcome outcome = phalanx.finish(milliseconds(90'000));
  int64_t ended = now_ns();
  if (!fault.strike) at = struck_at();
  ASSERT_NE(at, 0) << outcome;
  EXPECT_LT(ended - at, std::chrono::nanoseconds(fault.most).count()) << outcome;
  base::Result<base::Json> record = base::parse_json(say("ctl", "cat .local/state/phalanx/runs/latest/run.json"));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(base::get_string(*record, "cause").value_or(""), fault.code) << outcome;
  EXPECT_EQ(base::get_string(*record, "host").value_or(""), "h2") << outcome;
  EXPECT_EQ(record->value("rank", -1), fault.rank) << outcome;
  EXPECT_HAS(outcome.err, fault.says);
  EXPECT_NE(outcome.exit_code, 0);
  RecordProperty("seconds", fmt::format("{:.2f}", static_cast<double>(ended - at) / 1e9));
  std::printf("%-20s %-18s %5.2f s\n", fault.name.c_str(), fault.code.c_str(), static_cast<double>(ended - at) / 1e9);
  EXPECT_TRUE(fault.host_is_gone || cluster().heal("h2").ok());
  EXPECT_EQ(leftovers(milliseconds(8000)), "");
}

INSTANTIATE_TEST_SUITE_P(Faults, End, testing::ValuesIn(end_faults()), [](const auto& parameter) {
  std::string name;
  for (char c : parameter.param.name) name += c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace testbed
