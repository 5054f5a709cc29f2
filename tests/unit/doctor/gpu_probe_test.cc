// From a machine to its findings: folders that stand in for machines, the real probe with the stand-in library, the real rows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "cases.h"
#include "gpu_tree.h"

namespace phalanx::doctor::test {
namespace {

using machine::test::GpuTree;
using machine::test::TreeGpu;
using machine::test::two_3090;

std::set<std::string> codes_of(const Situation& s) {
  std::set<std::string> codes;
  for (const Finding& f : examine(s, {"GPU-", "VIS-", "PERF-"}).findings)
    if (f.row->severity != Severity::kNote) codes.insert(std::string(f.row->code));
  return codes;
}

// The workstation of the healthy clusters with the GPUs of that machine.
Situation with(GpuTree& tree, std::chrono::milliseconds deadline = std::chrono::milliseconds(1500)) {
  Situation s = single_machine();
  s.hosts[0].facts.gpus = tree.probe(deadline);
  return s;
}

using Codes = std::set<std::string>;

TEST(GpuProbe, AWellMachineGivesNoWarning) {
  GpuTree tree;
  two_3090(tree);
  EXPECT_EQ(codes_of(with(tree)), Codes{});
}

TEST(GpuProbe, TheFirstFieldNoteInBothOrders) {
  GpuTree tree;
  field_note_machine(tree);
  Situation s = with(tree);
  EXPECT_EQ(codes_of(s), Codes{"VIS-MIXED-ARCH"});
  auto& environment = s.hosts[0].facts.software.environment;
  environment["CUDA_VISIBLE_DEVICES"] = "0,2";
  EXPECT_EQ(codes_of(s), Codes{"VIS-ORDER"});  // a run sets PCI_BUS_ID: right here, wrong under torchrun
  environment["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST";
  EXPECT_EQ(codes_of(s), Codes{"VIS-MIXED-ARCH"});
  environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  EXPECT_EQ(codes_of(s), Codes{});
  environment["CUDA_VISIBLE_DEVICES"] = "GPU-ac50e9bd,GPU-ff67d0d7";
  environment.erase("CUDA_DEVICE_ORDER");
  EXPECT_EQ(codes_of(s), Codes{});
}

TEST(GpuProbe, EachFaultHasItsCode) {
  struct Fault {
    Codes codes;
    const char* lines;  // of the second card
    std::function<void(GpuTree&)> change;
  };
  auto nothing = [](GpuTree&) {};
  const Fault faults[] = {
      {{"GPU-LIB-MISMATCH"}, "", [](GpuTree& t) { t.describe("init 18\n"); }},
      {{"GPU-ECC"}, "ecc 1\necc_volatile 4\n", nothing},
      {{"GPU-REMAP-PENDING"}, "remap 0 1 1 0\n", nothing},
      {{"GPU-LOST", "GPU-XID-BUS", "VIS-NPROC"},
       "lost 1\n",
       [](GpuTree& t) { t.file("/dev/kmsg", "3,9,99000000000,-;NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n"); }},
      {{"PERF-POWER-BRAKE"}, "throttle 0x88\n", nothing},
      {{"PERF-POWER-LIMIT"}, "power_limit 250000\n", nothing},
      {{"GPU-BUSY"}, "process 4711 20000\nused 20004\n", [](GpuTree& t) { t.process(4711, "python3", 4000, 1001); }},
      {{"GPU-ORPHAN"}, "process 4711 20000\nused 20004\n", [](GpuTree& t) { t.process(4711, "python3", 1, 1001); }},
      {{"GPU-MEMORY-HELD"}, "process 4711 20000\nused 20004\n", nothing},
      {{"GPU-MIG"}, "mig_mode 1\nmig MIG-1\nmig MIG-2\n", nothing},
      {{"GPU-COMPUTE-MODE"}, "compute_mode 3\n", nothing},
      {{"GPU-DRIVER-SILENT"}, "", [](GpuTree& t) { t.describe("crash nvmlDeviceGetNvLinkState\n"); }},
      {{"GPU-UVM"}, "", [](GpuTree& t) { EXPECT_EQ(::unlink((t.root() + "/dev/nvidia-uvm").c_str()), 0); }},
      {{"GPU-DRIVER-OLD"}, "", [](GpuTree& t) { t.describe("cuda 11040\n"); }},
      {{"PERF-PCIE-WIDTH"}, "", [](GpuTree& t) { t.file("/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0/current_link_width", "8\n"); }},
  };
  for (const Fault& fault : faults) {
    GpuTree tree;
    two_3090(tree, fault.lines);
    fault.change(tree);
    EXPECT_EQ(codes_of(with(tree)), fault.codes) << fault.lines;
  }
}

TEST(GpuProbe, ADriverThatHangsCostsItsDeadlineOnly) {
  GpuTree tree;
  two_3090(tree);
  tree.describe("hang nvmlDeviceGetMemoryInfo\n");
  auto begin = std::chrono::steady_clock::now();
  Situation s = with(tree, std::chrono::milliseconds(800));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(800));
  EXPECT_EQ(codes_of(s), Codes{"GPU-DRIVER-SILENT"});
}

TEST(GpuProbe, UnequalModelsBetweenHosts) {
  GpuTree first, second;
  two_3090(first);
  second.driver("535.129.03", "535.129.03");
  for (int i = 0; i < 2; ++i) {
    TreeGpu g;
    g.name = "NVIDIA GeForce RTX 3080";
    g.uuid = "GPU-3080000" + std::to_string(i);
    g.pci = "0000:0" + std::to_string(i + 1) + ":00.0";
    g.cores = 8704;
    g.memory_mib = 10240;
    second.add(g);
  }
  Situation s = with(first);
  s.hosts.push_back(s.hosts[0]);
  s.hosts[1].name = "other";
  s.hosts[1].facts.gpus = second.probe();
  EXPECT_EQ(codes_of(s), Codes{"GPU-MODELS-DIFFER"});
}

}  // namespace
}  // namespace phalanx::doctor::test
