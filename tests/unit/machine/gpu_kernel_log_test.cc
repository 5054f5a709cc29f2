#include <gtest/gtest.h>

#include "gpu_tree.h"
#include "machine/gpu/sources.h"

namespace phalanx::machine::test {
namespace {

TEST(KernelLog, RecordsOfKmsg) {
  std::vector<Xid> xids = parse_kernel_log(
      "6,100,1000000,-;usb 1-1: new device\n"
      "3,101,90000000000,-;NVRM: Xid (PCI:0000:34:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
      " SUBSYSTEM=pci\n DEVICE=+pci:0000:34:00.0\n"
      "4,102,99990000000,-;nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 32 LTSSM Fault Up\n"
      "4,103,99990000000,-;NVRM: Xid (PCI:0000:34:00): garbage\n"
      "4,104,99990000000,-;NVRM: Xid (PCI:0000:34:00\n",
      100000, 1'700'000'000);
  ASSERT_EQ(xids.size(), 2u);
  EXPECT_EQ(xids[0].pci, "0000:34:00.0");
  EXPECT_EQ(xids[0].xid, 79);
  EXPECT_FALSE(xids[0].nvswitch);
  EXPECT_EQ(xids[0].age_s, 10000);
  EXPECT_EQ(xids[0].line, "NVRM: Xid (PCI:0000:34:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  EXPECT_TRUE(xids[1].nvswitch);
  EXPECT_EQ(xids[1].xid, 20034);
  EXPECT_EQ(xids[1].pci, "0000:c1:00.0");
  EXPECT_EQ(xids[1].age_s, 10);
}

TEST(KernelLog, AnInstanceOfMigBelongsToItsCard) {
  const std::string line = "4,1,5000000,-;NVRM: Xid (PCI:0000:b1:00 GPU-I:05 GPU-CI:02): 95, pid=8812, Uncontained: LTC TAG\n";
  const std::vector<Xid> xids = parse_kernel_log(line, 100, 1'700'000'000);
  ASSERT_EQ(xids.size(), 1u);
  EXPECT_EQ(xids[0].pci, "0000:b1:00.0");
  EXPECT_EQ(xids[0].xid, 95);
}

TEST(KernelLog, LinesOfDmesgAndSyslog) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  int64_t now = 1'700'000'000;  // 2023-11-14 22:13:20 UTC
  std::vector<Xid> xids = parse_kernel_log(
      "[99000.500000] NVRM: Xid (PCI:0000:01:00): 31, pid=123, name=python, Ch 00000008\n"
      "Nov 14 22:00:00 gpu01 kernel: [98000.1] NVRM: Xid (PCI:0000:01:00): 48, pid=1, An uncorrectable double bit error\n"
      "2023-11-14T22:13:10.123456+00:00 gpu01 kernel: NVRM: Xid (PCI:0000:01:00): 94, pid=1, Contained\n"
      "Nov 12 00:00:00 gpu01 kernel: NVRM: Xid (PCI:0000:01:00): 79, before this boot\n"
      "something else NVRM: Xid (PCI:0000:01:00): 13, Graphics SM Warp Exception\n",
      100000, now);
  ASSERT_EQ(xids.size(), 4u);
  EXPECT_EQ(xids[0].age_s, 999);
  EXPECT_EQ(xids[1].xid, 48);
  EXPECT_EQ(xids[1].age_s, 800);
  EXPECT_EQ(xids[2].xid, 94);
  EXPECT_EQ(xids[2].age_s, 10);
  EXPECT_EQ(xids[3].xid, 13);
  EXPECT_EQ(xids[3].age_s, -1);
}

TEST(KernelLog, TheNewestAreKept) {
  std::string log;
  for (int i = 0; i < 1000; ++i) log += "4,1," + std::to_string(i) + "000000,-;NVRM: Xid (PCI:0000:01:00): " + std::to_string(i) + ", x\n";
  std::vector<Xid> xids = parse_kernel_log(log, 2000, 0);
  ASSERT_EQ(xids.size(), 64u);
  EXPECT_EQ(xids.back().xid, 999);
}

TEST(KernelLog, FromTheRingElseFromTheSystemsFiles) {
  GpuTree tree;
  two_3090(tree);
  tree.file("/var/log/kern.log", "[99990.0] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n");
  GpuFacts f = tree.probe();
  ASSERT_EQ(f.xids.size(), 1u);
  EXPECT_EQ(f.kernel_log, "");
  tree.file("/dev/kmsg",
            "3,1,99999000000,-;NVRM: Xid (PCI:0000:01:00): 63, Row Remapper: New row marked for remapping, reset gpu to activate.\n");
  f = tree.probe();
  ASSERT_EQ(f.xids.size(), 1u);
  EXPECT_EQ(f.xids[0].xid, 63);
  EXPECT_EQ(f.xids[0].age_s, 1);
}

}  // namespace
}  // namespace phalanx::machine::test
