// PyTorch's own clients against our server: four workers of one process group, and every method of TCPStore.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "os/process.h"
#include "server_fixture.h"

namespace phalanx::store {
namespace {

constexpr int kNoTorch = 77;

constexpr const char* kWorker = R"(
import datetime, os, sys
try:
    import torch, torch.distributed as dist
except ImportError as why:
    print(why, file=sys.stderr)
    sys.exit(77)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=60))
ones = torch.full((1000,), float(rank + 1))
dist.all_reduce(ones)
assert ones.eq(world * (world + 1) / 2).all(), ones
dist.barrier()
if rank == 0:
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, False,
                          timeout=datetime.timedelta(seconds=20), wait_for_workers=False)
    store.set("a", "one")
    assert store.get("a") == b"one"
    assert store.add("n", 41) == 41 and store.add("n", 1) == 42 and store.get("n") == b"42"
    assert store.compare_set("a", "one", "two") == b"two"
    assert store.compare_set("a", "one", "three") == b"two"
    assert store.compare_set("new", "", "x") == b"x"
    assert store.delete_key("new") and not store.delete_key("new")
    before = store.num_keys()
    try:
        store.wait(["never"], datetime.timedelta(milliseconds=300))
        raise AssertionError("a wait for nothing came back")
    except RuntimeError:
        pass
    assert store.num_keys() == before
    store.set("never", "late")
    assert store.num_keys() == before + 1
    big = bytes(i % 251 for i in range(8 << 20))
    store.set("big", big.hex()[:8 << 20])
    assert store.get("big") == big.hex()[:8 << 20].encode()
    if hasattr(store, "multi_set"):
        store.multi_set(["m1", "m2"], ["x", "y"])
        assert store.multi_get(["m1", "m2"]) == [b"x", b"y"]
        store.append("m1", "z")
        assert store.get("m1") == b"xz" and store.check(["m1", "m2"]) and not store.check(["m3"])
    if hasattr(store, "queue_push"):
        store.queue_push("q", "item")
        assert store.queue_len("q") == 1 and store.queue_pop("q") == b"item" and store.queue_len("q") == 0
    if hasattr(store, "list_keys"):
        assert "a" in store.list_keys()
dist.barrier()
dist.destroy_process_group()
print(torch.__version__)
)";

class StorePyTorch : public ServerTest {
 protected:
  pid_t start_worker(int rank, int world) {
    const char* python = std::getenv("PHALANX_TEST_PYTHON");
    os::SpawnSpec spec;
    spec.program = python ? python : "/usr/bin/python3";
    spec.arguments = {spec.program, "-c", kWorker};
    for (char** v = environ; *v; ++v) spec.environment.emplace_back(*v);
    const std::pair<const char*, std::string> block[] = {
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", std::to_string(world)},
        {"LOCAL_RANK", std::to_string(rank)},
        {"MASTER_ADDR", server_->endpoint().address},
        {"MASTER_PORT", std::to_string(server_->endpoint().port)},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_RUN_ID", "store-test"},
        {"GLOO_SOCKET_IFNAME", "lo"},
        {"OMP_NUM_THREADS", "1"},
    };
    for (auto& [name, value] : block) spec.environment.push_back(std::string(name) + "=" + value);
    spec.fds = {{2, 2}};
    auto pid = os::spawn(spec);
    EXPECT_TRUE(pid.ok()) << (pid.ok() ? "" : pid.error().render());
    return pid.ok() ? *pid : 0;
  }
};

TEST_F(StorePyTorch, FourWorkersMeetHere) {
  if (::access("/usr/bin/python3", X_OK) != 0 && !std::getenv("PHALANX_TEST_PYTHON")) GTEST_SKIP() << "no /usr/bin/python3";
  serve();
  constexpr int kWorld = 4;
  std::map<pid_t, int> status_of;
  ASSERT_TRUE(loop_->on_child([&](pid_t pid, int status) { status_of[pid] = status; }).ok());
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kWorld; ++rank) pids.push_back(start_worker(rank, kWorld));
  os::Mono end = os::mono_now() + std::chrono::seconds(100);
  while (status_of.size() < kWorld && os::mono_now() < end) loop_->poll(std::chrono::milliseconds(100));
  for (pid_t pid : pids) {
    if (!status_of.contains(pid)) ::kill(pid, SIGKILL);
  }
  ASSERT_EQ(status_of.size(), size_t{kWorld}) << "workers hang";
  for (auto& [pid, status] : status_of) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoTorch) GTEST_SKIP() << "python3 has no torch (Debian: python3-torch)";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "pid " << pid << " status " << status;
  }
  Counters counters = server_->counters();
  EXPECT_EQ(counters.bad_frames + counters.refused + counters.over_limit, 0u);
  int spoke = 0;
  for (auto& peer : server_->peers()) spoke += peer.requests > 0;
  EXPECT_EQ(spoke, kWorld + 1);
  RecordProperty("requests", static_cast<int>(counters.requests));
}

}  // namespace
}  // namespace phalanx::store
