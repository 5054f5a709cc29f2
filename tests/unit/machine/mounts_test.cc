#include "machine/storage/mounts.h"

#include <gtest/gtest.h>

#include "machine/cgroups.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

TEST(Mounts, TheLongestMountPointCounts) {
  std::vector<Mount> mounts = parse_mountinfo(
      "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "30 22 0:30 / /data rw - xfs /dev/sdb ro,noquota\n"
      "31 30 0:31 /sub /data/a\\040b rw,noatime shared:5 master:1 - nfs4 nas:/x rw\n"
      "32 22 0:32 / /data rw - tmpfs covers rw\n"
      "broken line\n33 x 0:1 / /y rw - a b c\n");
  ASSERT_EQ(mounts.size(), 4u);
  EXPECT_TRUE(mounts[1].read_only) << "by the file system's options";
  EXPECT_EQ(mount_of(mounts, "/database")->mount_point, "/");
  EXPECT_EQ(mount_of(mounts, "/data")->source, "covers") << "the later of two at one place";
  EXPECT_EQ(mount_of(mounts, "/data/a b/c")->fs_type, "nfs4");
  EXPECT_EQ(mount_of({}, "/data"), nullptr);
}

TEST(Mounts, ThisMachinesOwn) {
  base::Result<std::string> text = os::read_file("/proc/self/mountinfo", 16 << 20);
  ASSERT_TRUE(text.ok());
  std::vector<Mount> mounts = parse_mountinfo(*text);
  ASSERT_NE(mount_of(mounts, "/proc/self"), nullptr);
  EXPECT_EQ(mount_of(mounts, "/proc/self")->fs_type, "proc");
}

TEST(Mounts, AServerIsTakenFromASource) {
  struct {
    const char *source, *server, *path;
  } cases[] = {{"nas:/export/home", "nas", "/export/home"},
               {"[fd00::5]:/x", "fd00::5", "/x"},
               {"//server/share/deep", "server", "/share/deep"},
               {"10.0.0.1@o2ib:/lfs", "10.0.0.1", "/lfs"},
               {"mon1,mon2:/", "mon1", "/"},
               {"/dev/sda1", "", "/dev/sda1"},
               {"tmpfs", "", "tmpfs"},
               {":/x", "", ":/x"},
               {"//server", "server", ""}};
  for (auto& c : cases) {
    EXPECT_EQ(split_source(c.source).server, c.server) << c.source;
    EXPECT_EQ(split_source(c.source).path, c.path) << c.source;
  }
}

TEST(Mounts, NetworkFileSystems) {
  for (const char* type : {"nfs", "nfs4", "lustre", "fuse.juicefs", "fuse.sshfs", "wekafs", "cifs"})
    EXPECT_TRUE(is_network_fs(type)) << type;
  for (const char* type : {"ext4", "xfs", "overlay", "tmpfs", "fuse.lxcfs", "fuseblk", "nfsd"}) EXPECT_FALSE(is_network_fs(type)) << type;
}

TEST(Cgroups, VersionOneTwoAndBothInsideAContainer) {
  std::vector<Mount> v1 = parse_mountinfo(
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "36 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  std::vector<CgroupLine> lines = parse_cgroup("4:memory:/user.slice/job\n0::/user.slice\nnonsense\n5:cpu,cpuacct:/\n");
  ASSERT_EQ(lines.size(), 3u);
  CgroupChain memory = cgroup_chain("memory", lines, v1);
  EXPECT_FALSE(memory.version_2);
  EXPECT_EQ(memory.folders, (std::vector<std::string>{"/sys/fs/cgroup/memory/user.slice/job", "/sys/fs/cgroup/memory/user.slice",
                                                      "/sys/fs/cgroup/memory"}));
  CgroupChain pids = cgroup_chain("pids", lines, v1);
  EXPECT_TRUE(pids.version_2);
  EXPECT_EQ(pids.folders, (std::vector<std::string>{"/sys/fs/cgroup/unified/user.slice", "/sys/fs/cgroup/unified"}));
  // docker on version 1: the mount shows only the container's part.
  std::vector<Mount> docker = parse_mountinfo("35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_EQ(cgroup_chain("memory", parse_cgroup("4:memory:/docker/abc/sub\n"), docker).folders,
            (std::vector<std::string>{"/sys/fs/cgroup/memory/sub", "/sys/fs/cgroup/memory"}));
  std::vector<Mount> v2 = parse_mountinfo("29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(cgroup_chain("memory", parse_cgroup("0::/../../other\n"), v2).folders, (std::vector<std::string>{"/sys/fs/cgroup"}));
  EXPECT_TRUE(cgroup_chain("memory", {}, v2).folders.empty());
}

}  // namespace
}  // namespace phalanx::machine
