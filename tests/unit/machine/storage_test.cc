// Storage is looked at for real: file systems made for the test in a mount namespace, full, small, read-only, and one that never answers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "machine/probe.h"
#include "machine/storage/mounts.h"
#include "machine/storage/path_look.h"
#include "machine/storage/path_token.h"
#include "machine/storage/shared_memory.h"
#include "os/files.h"
#include "os/guarded.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

std::string folder() { return scratch::folder("storage-test"); }

void write_file(const std::string& path, const std::string& text) { EXPECT_TRUE(os::write_file_atomic(path, text, 0644).ok()) << path; }

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// What `look` sees in a mount namespace of its own; "no namespace" where that is not to be had.
std::string in_namespace(const std::function<std::string()>& look) {
  auto answers = os::run_guarded({{"namespace",
                                   [&look]() -> std::string {
                                     if (::unshare(CLONE_NEWNS) != 0) return "no namespace";
                                     if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "no namespace";
                                     return look();
                                   }}},
                                 os::milliseconds(30'000));
  return answers[0].ok() ? *answers[0] : answers[0].error().message;
}

struct Seen {
  StorageFacts storage;
  std::vector<Gap> gaps;
  int64_t took_ns = 0;
};
template <typename V>
void fields(V& v, Seen& f) {
  v("storage", f.storage);
  v("gaps", f.gaps);
  v("took_ns", f.took_ns);
}

// `deadline`: a busy machine must not be taken for a hung one.
std::string see(const std::vector<NamedPath>& paths, os::milliseconds deadline = os::milliseconds(10'000)) {
  ProbeRequest r;
  r.deadline = deadline;
  Seen seen;
  os::Mono begin = os::mono_now();
  seen.storage = probe_storage(r, paths, seen.gaps);
  seen.took_ns = (os::mono_now() - begin).count();
  return base::to_text(base::to_json(seen));
}

Seen parsed(const std::string& text) {
  base::Result<base::Json> json = base::parse_json(text);
  EXPECT_TRUE(json.ok()) << text;
  if (!json.ok()) return {};
  base::Result<Seen> seen = base::from_json<Seen>(*json);
  EXPECT_TRUE(seen.ok()) << text;
  return seen.ok() ? *seen : Seen{};
}

const PathFact& fact(const Seen& seen, const std::string& path) {
  static const PathFact kNone;
  for (const PathFact& f : seen.storage.paths)
    if (f.path == path) return f;
  ADD_FAILURE() << path << " was not looked at";
  return kNone;
}

TEST(Storage, WhatAPathIs) {
  std::string at = folder();
  write_file(at + "/data.bin", std::string(3 << 20, 'a'));
  ASSERT_TRUE(os::make_folders(at + "/set").ok());
  write_file(at + "/set/one", "1");
  ASSERT_EQ(::symlink("/nowhere/at/all", (at + "/dangling").c_str()), 0);
  Seen seen = parsed(see({{at + "/data.bin", "input", "--data"},
                          {at + "/set/", "input", "--set"},
                          {at + "/dangling", "input", "--link"},
                          {at + "/absent/deep", "output", "--out"}}));
  const PathFact& file = fact(seen, at + "/data.bin");
  EXPECT_TRUE(file.exists);
  EXPECT_EQ(file.kind, "file");
  EXPECT_EQ(file.size, 3 << 20);
  EXPECT_EQ(file.token.size(), 16u);
  EXPECT_FALSE(file.writable.has_value()) << "an input is never written to";
  EXPECT_FALSE(file.mount_point.empty());
  EXPECT_GT(file.total_bytes, 0);
  EXPECT_EQ(fact(seen, at + "/set").kind, "folder");
  EXPECT_EQ(fact(seen, at + "/set").entries, 1);
  EXPECT_FALSE(fact(seen, at + "/dangling").exists);
  EXPECT_EQ(fact(seen, at + "/dangling").kind, "link");
  const PathFact& out = fact(seen, at + "/absent/deep");
  EXPECT_FALSE(out.exists);
  EXPECT_TRUE(out.writable.value_or(false)) << out.error;
  EXPECT_GT(out.write_ns, 0);
  EXPECT_TRUE(seen.gaps.empty());
  EXPECT_FALSE(run("ls -A " + at + " | grep phalanx-probe")) << "nothing may stay behind";
}

// In a shared folder anybody can make a file first, and two containers of one host have equal names and equal pids.
TEST(Storage, NobodyCanTakeTheNameOfTheWriteTestBeforehand) {
  std::string at = folder();
  char host[64] = "";
  ASSERT_EQ(::gethostname(host, sizeof(host) - 1), 0);
  ASSERT_TRUE(run(fmt::format("touch '{}/.phalanx-probe-{}-{}'", at, host, ::getpid())));
  const WriteTest test = try_write(at);
  EXPECT_TRUE(test.done) << test.error;
  EXPECT_TRUE(try_write(at).done);
  EXPECT_TRUE(run("test $(ls -A " + at + " | wc -l) = 1")) << "nothing may stay behind";
}

TEST(Storage, ASmallSharedMemoryAndAFullAndAReadOnlyFileSystem) {
  std::string at = folder();
  for (const char* name : {"/full", "/inodes", "/ro"}) ASSERT_TRUE(os::make_folders(at + name).ok());
  auto look = [at]() -> std::string {
    if (::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") != 0) return "no tmpfs";
    for (auto [image, options, name] : {std::tuple("full.img", "", "full"), {"inodes.img", "-N 64", "inodes"}}) {
      std::string file = at + "/" + image;
      if (!run("truncate -s 8M " + file) || !run(fmt::format("mkfs.ext4 -q -F {} {}", options, file)) ||
          !run(fmt::format("mount -o loop {} {}/{}", file, at, name)))
        return "no loop device";
    }
    run("dd if=/dev/zero bs=64k of=" + at + "/full/big");
    run(fmt::format("for i in $(seq 100); do : > {}/inodes/$i; done", at));
    if (::mount("tmpfs", (at + "/ro").c_str(), "tmpfs", MS_RDONLY, "size=1m") != 0) return "no tmpfs";
    return see({{at + "/full/out", "output", "--out"}, {at + "/inodes/out", "output", "--out2"}, {at + "/ro/out", "output", "--out3"}});
  };
  std::string text = in_namespace(look);
  if (text.rfind("no ", 0) == 0) GTEST_SKIP() << text;
  Seen seen = parsed(text);
  EXPECT_TRUE(seen.storage.shm_present);
  EXPECT_EQ(seen.storage.shm_total_bytes, 1 << 20);
  const PathFact& full = fact(seen, at + "/full/out");
  EXPECT_EQ(full.fs_type, "ext4");
  EXPECT_EQ(full.mount_point, at + "/full");
  EXPECT_LT(full.free_bytes, 64 << 10);
  EXPECT_EQ(full.writable, std::optional(false));
  EXPECT_NE(full.error.find("No space left"), std::string::npos) << full.error;
  const PathFact& inodes = fact(seen, at + "/inodes/out");
  EXPECT_EQ(inodes.free_inodes, 0);
  EXPECT_GT(inodes.free_bytes, 1 << 20);
  EXPECT_EQ(inodes.writable, std::optional(false));
  const PathFact& ro = fact(seen, at + "/ro/out");
  EXPECT_TRUE(ro.read_only);
  EXPECT_NE(ro.error.find("Read-only"), std::string::npos) << ro.error;
}

// A FUSE file system whose server never says anything: every call on it waits for ever.
TEST(Storage, AHungFileSystemCostsOneFindingAndSomePatience) {
  std::string at = folder();
  ASSERT_TRUE(os::make_folders(at + "/hung").ok());
  auto look = [at]() -> std::string {
    int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0) return "no /dev/fuse";
    std::string options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", fuse);
    if (::mount("phalanx-hung", (at + "/hung").c_str(), "fuse.hung", 0, options.c_str()) != 0) return "no FUSE mount";
    std::string text = see({{at + "/hung/data", "input", "--data"}, {at, "input", "--near"}}, os::milliseconds(800));
    ::umount2((at + "/hung").c_str(), MNT_DETACH);
    return text;
  };
  std::string text = in_namespace(look);
  if (text.rfind("no ", 0) == 0) GTEST_SKIP() << text;
  Seen seen = parsed(text);
  ASSERT_EQ(seen.storage.hung.size(), 1u) << text;
  EXPECT_EQ(seen.storage.hung[0], at + "/hung/data");
  const PathFact& hung = fact(seen, at + "/hung/data");
  EXPECT_EQ(hung.mount_point, at + "/hung");
  EXPECT_EQ(hung.fs_type, "fuse.hung");
  EXPECT_NE(hung.error.find("no answer"), std::string::npos) << hung.error;
  EXPECT_TRUE(fact(seen, at).exists) << "its neighbour answers";
  EXPECT_EQ(seen.gaps.size(), 1u) << text;
  EXPECT_GT(seen.took_ns, 1'000'000'000) << "a server that is overloaded may yet answer";
  EXPECT_LT(seen.took_ns, 20'000'000'000) << "it takes 1.4 s where the machine has time";
}

// The whole probe: a child that hangs inside the storage part must not take that part's answer with it.
TEST(Storage, AHungFileSystemDoesNotTakeTheRestOfTheProbeWithIt) {
  std::string at = folder();
  ASSERT_TRUE(os::make_folders(at + "/hung").ok());
  auto look = [at]() -> std::string {
    int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0) return "no /dev/fuse";
    std::string options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", fuse);
    if (::mount("phalanx-hung", (at + "/hung").c_str(), "fuse.hung", 0, options.c_str()) != 0) return "no FUSE mount";
    ProbeRequest r;
    r.paths = {at + "/hung/model"};
    r.deadline = std::chrono::seconds(1);
    std::string text = base::to_text(base::to_json(probe(r)));
    ::umount2((at + "/hung").c_str(), MNT_DETACH);
    return text;
  };
  std::string text = in_namespace(look);
  if (text.rfind("no ", 0) == 0) GTEST_SKIP() << text;
  base::Result<base::Json> json = base::parse_json(text);
  ASSERT_TRUE(json.ok()) << text;
  base::Result<Facts> facts = base::from_json<Facts>(*json);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->storage.hung, std::vector<std::string>{at + "/hung/model"});
  EXPECT_GT(facts->storage.shm_total_bytes, 0);
  EXPECT_GT(facts->machine.memory_bytes, 0);
}

TEST(Storage, OrphansAreSegmentsThatNobodyHas) {
  auto look = []() -> std::string {
    if (::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=8m") != 0) return "no tmpfs";
    for (const char* name : {"nccl-Dead01", "nccl-Mapped", "torch_1234_open", "unrelated"})
      if (!run(fmt::format("head -c 65536 /dev/zero > /dev/shm/{0} && touch -d '1 hour ago' /dev/shm/{0}", name))) return "no touch";
    int mapped = ::open("/dev/shm/nccl-Mapped", O_RDWR);
    void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, mapped, 0);
    ::close(mapped);
    int open = ::open("/dev/shm/torch_1234_open", O_RDWR);
    if (memory == MAP_FAILED || open < 0) return "no mapping";
    return see({});
  };
  std::string text = in_namespace(look);
  if (text.rfind("no ", 0) == 0) GTEST_SKIP() << text;
  Seen seen = parsed(text);
  EXPECT_EQ(seen.storage.shm_orphans, std::vector<std::string>{"nccl-Dead01"});
  EXPECT_EQ(seen.storage.shm_orphan_bytes, 65536);
}

TEST(Storage, NetworkMountsComeFromWhatIsMountedAndFromFstab) {
  std::string root = folder();
  ASSERT_TRUE(os::make_folders(root + "/proc/self").ok());
  ASSERT_TRUE(os::make_folders(root + "/etc").ok());
  write_file(root + "/proc/self/mountinfo",
             "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
             "40 22 0:41 / /home rw,relatime shared:1 - nfs4 192.168.20.9:/home rw,vers=4.2,hard\n");
  write_file(root + "/etc/fstab",
             "# /etc/fstab\n"
             "192.168.20.9:/home /home nfs4 defaults 0 0\n"
             "192.169.20.14:/data/ /data/ nfs defaults,_netdev 0 0\n"
             "nas:/scratch /scratch nfs noauto 0 0\n"
             "//win/share /mnt/win cifs credentials=/root/.cred 0 0\n");
  ProbeRequest r;
  r.root = root;
  std::vector<Gap> gaps;
  std::vector<NetworkMount> mounts = probe_storage(r, {}, gaps).network_mounts;
  ASSERT_EQ(mounts.size(), 3u);
  EXPECT_TRUE(mounts[0].mounted);
  EXPECT_EQ(mounts[0].server, "192.168.20.9");
  EXPECT_FALSE(mounts[1].mounted);
  EXPECT_EQ(mounts[1].mount_point, "/data");
  EXPECT_EQ(mounts[1].server, "192.169.20.14");
  EXPECT_EQ(mounts[2].server, "win");
}

TEST(Token, SaysWhetherTwoHostsSeeTheSame) {
  std::string a = folder(), b = folder();
  for (const std::string& at : {a, b}) {
    write_file(at + "/big", std::string(4 << 20, 'a'));
    write_file(at + "/train.json", "[]");
  }
  write_file(b + "/.train.json.lock", "");
  os::milliseconds budget(1000);
  EXPECT_EQ(content_token(a, budget).token, content_token(b, budget).token);
  EXPECT_EQ(content_token(a + "/big", budget).token, content_token(b + "/big", budget).token);
  write_file(b + "/big", std::string((4 << 20) - 1, 'a') + "b");
  EXPECT_NE(content_token(a + "/big", budget).token, content_token(b + "/big", budget).token);
  EXPECT_EQ(content_token(a, budget).token, content_token(b, budget).token) << "names and sizes only";
  write_file(b + "/extra", "");
  EXPECT_NE(content_token(a, budget).token, content_token(b, budget).token);
  EXPECT_EQ(content_token(a + "/absent", budget).token, "");
  EXPECT_EQ(content_token("/dev/zero", budget).token, "");
}

TEST(SharedMemory, RemoveIpcIsReadAsSystemdDoes) {
  EXPECT_EQ(remove_ipc_in("[Login]\n#RemoveIPC=yes\n"), std::nullopt);
  EXPECT_EQ(remove_ipc_in("[Login]\nRemoveIPC=no\n"), std::optional(false));
  EXPECT_EQ(remove_ipc_in("RemoveIPC=no\n RemoveIPC = yes \r\n"), std::optional(true));
}

}  // namespace
}  // namespace phalanx::machine
