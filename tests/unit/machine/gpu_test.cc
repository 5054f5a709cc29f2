// probe_gpus on machines made of folders: the real helper, the real dlopen, a stand-in library.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "gpu_tree.h"
#include "machine/gpu/cuda_order.h"

namespace phalanx::machine::test {
namespace {

using namespace std::chrono_literals;

TEST(Gpus, OfTheFirstFieldNote) {
  GpuTree tree;
  field_note_machine(tree);
  GpuFacts f = tree.probe();
  EXPECT_EQ(f.source, "nvml");
  EXPECT_EQ(f.nvml_error, "");
  EXPECT_EQ(f.driver, "535.129.03");
  EXPECT_EQ(f.kernel_module, "535.129.03");
  EXPECT_FALSE(f.open_module);
  EXPECT_EQ(f.cuda_driver, 12020);
  EXPECT_EQ(f.pci_devices, 3);
  EXPECT_EQ(f.device_nodes, 3);
  EXPECT_TRUE(f.uvm_node);
  EXPECT_EQ(f.modules, (std::vector<std::string>{"nvidia_uvm", "nvidia"}));
  ASSERT_EQ(f.devices.size(), 3u);
  const Gpu& g = f.devices[0];
  EXPECT_EQ(g.name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(g.uuid, "GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60");
  EXPECT_EQ(g.pci, "0000:01:00.0");
  EXPECT_EQ(g.cc_major * 10 + g.cc_minor, 86);
  EXPECT_EQ(g.sm_count, 82);
  EXPECT_EQ(g.memory_bytes, int64_t{24576} << 20);
  EXPECT_EQ(g.memory_used_bytes, 4 << 20);
  EXPECT_EQ(g.compute_mode, "default");
  EXPECT_EQ(g.persistence, true);
  EXPECT_EQ(g.power_limit_mw, 350'000);
  EXPECT_EQ(g.throttle_reasons, 1);
  EXPECT_EQ(g.local_cpus, "0-15");
  EXPECT_EQ(g.numa_node, 0);
  ASSERT_EQ(g.pcie.size(), 2u);
  EXPECT_EQ(g.pcie[0].width, 16);
  EXPECT_EQ(g.pcie[1].address, "0000:00:01.0");
  EXPECT_FALSE(g.ecc.has_value());  // not supported is not "off"
  EXPECT_FALSE(g.mig.has_value());
  EXPECT_EQ(f.devices[1].sm_count, 3);
  EXPECT_EQ(f.devices[1].display_active, true);
  ASSERT_EQ(f.pairs.size(), 3u);
  EXPECT_EQ(f.pairs[0].p2p_read, "chipset not supported");
  EXPECT_EQ(f.pairs[0].path, "PHB");
  EXPECT_EQ(enumerate_gpus(f, CudaOrder::kFastestFirst).devices, (std::vector<int64_t>{0, 2, 1}));
}

TEST(Gpus, HealthEcSettingsAndWhatStandsBesideThem) {
  GpuTree tree;
  two_3090(tree,
           "ecc 1\necc_volatile 2\necc_aggregate 9\nremap 1 2 1 0\nretired 3\nfabric 3\nmig_mode 1\nmig MIG-1\nmig MIG-2\ncompute_mode 3\n"
           "replays 77\nclock_application 1200\nclock_application_default 1410\nreserved 600\nthrottle 0x80\n"
           "link 0 1 0000:01:00.0 0 5\nlink 1 1 0000:01:00.0 0 0\nlink 2 0 - 0 0\nprocess 4711 20000\nprocess 4712 100\n");
  tree.process(4711, "python3", 1, 1001);
  GpuFacts f = tree.probe();
  ASSERT_EQ(f.devices.size(), 2u);
  const Gpu& g = f.devices[1];
  EXPECT_EQ(g.ecc, true);
  EXPECT_EQ(g.ecc_volatile_uncorrected, 2);
  EXPECT_EQ(g.ecc_aggregate_uncorrected, 9);
  EXPECT_EQ(g.remapped_correctable, 1);
  EXPECT_EQ(g.remapped_uncorrectable, 2);
  EXPECT_TRUE(g.remap_pending);
  EXPECT_FALSE(g.remap_failed);
  EXPECT_EQ(g.retired_pages, 3);
  EXPECT_EQ(g.fabric_state, 3);
  EXPECT_EQ(g.mig, true);
  EXPECT_EQ(g.mig_devices, (std::vector<std::string>{"MIG-1", "MIG-2"}));
  EXPECT_EQ(g.compute_mode, "exclusive_process");
  EXPECT_EQ(g.pcie_replays, 77);
  EXPECT_EQ(g.clock_application_mhz, 1200);
  EXPECT_EQ(g.memory_reserved_bytes, int64_t{600} << 20);
  EXPECT_EQ(g.throttle_reasons, 0x80);
  ASSERT_EQ(g.nvlinks.size(), 3u);
  EXPECT_EQ(g.nvlinks[0].errors, 5);
  EXPECT_EQ(g.nvlinks[0].remote, "0000:01:00.0");
  EXPECT_FALSE(g.nvlinks[2].active);
  ASSERT_EQ(g.processes.size(), 2u);
  EXPECT_TRUE(g.processes[0].visible);
  EXPECT_EQ(g.processes[0].name, "python3");
  EXPECT_EQ(g.processes[0].user, "anna");
  EXPECT_EQ(g.processes[0].parent, 1);
  EXPECT_EQ(g.processes[0].age_s, 7200);
  EXPECT_EQ(g.processes[0].used_bytes, int64_t{20000} << 20);
  EXPECT_FALSE(g.processes[1].visible);
}

// The longer struct that some drivers fill is told by its size: pids after the first would be wrong otherwise.
TEST(Gpus, ProcessesInTheStructOfEarly535Drivers) {
  for (const char* words : {"3", "4"}) {
    GpuTree tree;
    tree.describe(std::string("process_words ") + words + "\n");
    two_3090(tree, "process 11 1\nprocess 22 2\nprocess 33 3\n");
    GpuFacts f = tree.probe();
    ASSERT_EQ(f.devices.at(1).processes.size(), 3u) << words;
    EXPECT_EQ(f.devices[1].processes[2].pid, 33) << words;
    EXPECT_EQ(f.devices[1].processes[2].used_bytes, 3 << 20) << words;
  }
}

TEST(Gpus, AnOldDriverWithoutVersionedCalls) {
  GpuTree tree;
  tree.use_old_library();
  two_3090(tree, "process 11 1\nprocess 22 2\n");
  GpuFacts f = tree.probe();
  EXPECT_EQ(f.source, "nvml");
  ASSERT_EQ(f.devices.size(), 2u);
  EXPECT_EQ(f.devices[1].pci, "0000:02:00.0");
  EXPECT_EQ(f.devices[1].memory_bytes, int64_t{24576} << 20);
  EXPECT_FALSE(f.devices[1].memory_reserved_bytes.has_value());
  EXPECT_EQ(f.devices[1].sm_count, 0);
  ASSERT_EQ(f.devices[1].processes.size(), 2u);
  EXPECT_EQ(f.devices[1].processes[1].pid, 22);
}

TEST(Gpus, DriverAndLibraryOfDifferentVersions) {
  GpuTree tree;
  two_3090(tree);
  tree.describe("init 18\n");
  tree.driver("535.154.05", "535.129.03");
  GpuFacts f = tree.probe();
  EXPECT_EQ(f.nvml_error, "Driver/library version mismatch");
  EXPECT_EQ(f.driver, "535.154.05");  // from the name of the library's file
  EXPECT_EQ(f.kernel_module, "535.129.03");
  EXPECT_EQ(f.source, "proc");
  ASSERT_EQ(f.devices.size(), 2u);
  EXPECT_EQ(f.devices[0].name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(f.devices[0].uuid, "GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60");
}

TEST(Gpus, ALostOneKeepsTheOthers) {
  GpuTree tree;
  two_3090(tree, "lost 1\n");
  GpuFacts f = tree.probe();
  ASSERT_EQ(f.devices.size(), 2u);
  EXPECT_EQ(f.devices[0].fault, "");
  EXPECT_EQ(f.devices[1].fault, "GPU is lost");
  tree.file("/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0/config", std::string(64, '\xff'));
  EXPECT_EQ(tree.probe().lost, (std::vector<std::string>{"0000:02:00.0"}));
}

// A driver that never answers costs its deadline, and the facts that came before are there.
TEST(Gpus, ADriverThatHangsOrCrashes) {
  for (const char* how : {"hang", "crash"}) {
    GpuTree tree;
    two_3090(tree);
    tree.describe(std::string(how) + " nvmlDeviceGetNvLinkState\n");
    auto begin = std::chrono::steady_clock::now();
    GpuFacts f = tree.probe(700ms);
    auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(f.source, "nvml") << how;
    EXPECT_EQ(f.devices.size(), 2u) << how;
    EXPECT_EQ(f.pairs.size(), 1u) << how;
    EXPECT_EQ(f.nvml_error.substr(0, 20), std::string(how) == "hang" ? "no answer for 0.4 s;" : "killed by SIGABRT") << f.nvml_error;
    EXPECT_LT(took, 650ms) << how;
  }
  GpuTree tree;
  two_3090(tree);
  tree.describe("hang nvmlInit\n");
  GpuFacts f = tree.probe(600ms);
  EXPECT_EQ(f.source, "proc");
  EXPECT_EQ(f.devices.size(), 2u);
  EXPECT_NE(f.nvml_error.find("no answer for 0.3 s"), std::string::npos) << f.nvml_error;
}

TEST(Gpus, NvidiaSmiWhereThereIsNoLibrary) {
  GpuTree tree;
  tree.file("/usr/bin/nvidia-smi",
            "#!/bin/sh\ncase \"$1\" in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;; esac\n"
            "echo 'index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], driver_version, persistence_mode, compute_mode, "
            "power.draw "
            "[W], ecc.mode.current, pcie.link.width.current, pcie.link.width.max'\n"
            "echo '0, NVIDIA GeForce RTX 3090, GPU-1, 00000000:01:00.0, 24576, 10, 470.57.02, Disabled, Exclusive_Process, 21.55, [N/A], "
            "8, 16'\n");
  ::chmod((tree.root() + "/usr/bin/nvidia-smi").c_str(), 0755);
  GpuFacts f = tree.probe();
  EXPECT_EQ(f.source, "nvidia-smi");
  EXPECT_EQ(f.driver, "470.57.02");
  ASSERT_EQ(f.devices.size(), 1u);
  EXPECT_EQ(f.devices[0].pci, "0000:01:00.0");
  EXPECT_EQ(f.devices[0].memory_bytes, int64_t{24576} << 20);
  EXPECT_EQ(f.devices[0].power_mw, 21550);
  EXPECT_EQ(f.devices[0].persistence, false);
  EXPECT_EQ(f.devices[0].compute_mode, "exclusive_process");
  EXPECT_FALSE(f.devices[0].ecc.has_value());
  EXPECT_EQ(f.devices[0].pcie.at(0).width, 8);
}

TEST(Gpus, NoneIsNoError) {
  GpuTree tree;
  GpuFacts f = tree.probe();
  EXPECT_EQ(f.source, "");
  EXPECT_EQ(f.nvml_error, "");
  EXPECT_TRUE(f.devices.empty());
  ProbeRequest here;
  auto begin = std::chrono::steady_clock::now();
  probe_gpus(here);  // whatever this machine has
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

TEST(Gpus, PathsThroughThePciTree) {
  struct Place {
    const char* complex;
    std::vector<std::string> bridges;
    const char* pci;
    int64_t numa;
  };
  const Place places[] = {
      {"pci0000:00", {"0000:00:01.0", "0000:01:00.0", "0000:02:00.0"}, "0000:03:00.0", 0},  // 0: below switch A
      {"pci0000:00", {"0000:00:01.0", "0000:01:00.0", "0000:02:01.0"}, "0000:04:00.0", 0},  // 1: below switch A
      {"pci0000:00", {"0000:00:02.0"}, "0000:05:00.0", 0},                                  // 2: own root port
      {"pci0000:40", {"0000:40:01.0"}, "0000:41:00.0", 0},                                  // 3: other complex, same node
      {"pci0000:80", {"0000:80:01.0"}, "0000:81:00.0", 1},                                  // 4: other node
  };
  GpuTree tree;
  tree.driver("535.129.03", "535.129.03");
  for (const Place& p : places) {
    TreeGpu g;
    g.uuid = std::string("GPU-") + p.pci;
    g.pci = p.pci;
    g.root_complex = p.complex;
    g.bridges = p.bridges;
    g.numa_node = p.numa;
    tree.add(g);
  }
  GpuFacts f = tree.probe();  // this NVML says nothing of pairs
  ASSERT_EQ(f.pairs.size(), 10u);
  auto path = [&](int64_t a, int64_t b) {
    for (const GpuPair& p : f.pairs)
      if (p.a == a && p.b == b) return p.path;
    return std::string("none");
  };
  EXPECT_EQ(path(0, 1), "PIX");
  EXPECT_EQ(path(0, 2), "PHB");
  EXPECT_EQ(path(0, 3), "NODE");
  EXPECT_EQ(path(3, 4), "SYS");
  EXPECT_EQ(f.devices[0].pcie.size(), 4u);
}

TEST(Gpus, NvLinksMakeThePath) {
  GpuTree tree;
  tree.driver("535.129.03", "535.129.03");
  TreeGpu g;
  g.uuid = "GPU-1";
  g.lines = "link 0 1 0000:02:00.0 0 0\nlink 1 1 0000:02:00.0 0 0\nlink 2 1 0000:c0:00.0 2 0\n";
  tree.add(g);
  g.uuid = "GPU-2";
  g.pci = "0000:02:00.0";
  g.lines = "link 0 1 0000:01:00.0 0 0\nlink 1 1 0000:01:00.0 0 0\nlink 2 1 0000:c0:00.0 2 0\n";
  tree.add(g);
  g.uuid = "GPU-3";
  g.pci = "0000:03:00.0";
  g.lines = "link 0 1 0000:c0:00.0 2 0\nlink 1 0 - 2 0\n";
  tree.add(g);
  tree.pairs("p2p 0 1 0 0 50\np2p 0 2 0 0 50\n");
  GpuFacts f = tree.probe();
  ASSERT_EQ(f.pairs.size(), 3u);
  EXPECT_EQ(f.pairs[0].path, "NV2");
  EXPECT_EQ(f.pairs[0].p2p_read, "ok");
  EXPECT_EQ(f.pairs[1].path, "NV1");
}

TEST(Gpus, AcsIommuAndDevicesOfVirtualMachines) {
  GpuTree tree;
  two_3090(tree);
  // Extended capabilities at 0x100: advanced error reporting (1), next at 0x148: ACS (13) with redirection on.
  std::string config(4096, '\0');
  config[0x100] = 0x01, config[0x103] = 0x14, config[0x102] = static_cast<char>(0x82);
  config[0x148] = 0x0d, config[0x14a] = 1, config[0x14e] = 0x1d;
  tree.file("/sys/devices/pci0000:00/0000:00:01.0/config", config);
  tree.file("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/iommu_group/type", "DMA-FQ\n");
  GpuFacts f = tree.probe();
  EXPECT_TRUE(f.devices[0].pcie.at(1).acs_redirects);
  EXPECT_FALSE(f.devices[1].pcie.at(1).acs_redirects);
  EXPECT_TRUE(f.iommu_translates);
  EXPECT_EQ(f.pci_devices, 2);
  ::symlink("../../../../bus/pci/drivers/vfio-pci", (tree.root() + "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0/driver").c_str());
  EXPECT_EQ(tree.probe().pci_devices, 1);
}

TEST(Gpus, TheFabricManagerOfAnNvSwitchMachine) {
  GpuTree tree;
  two_3090(tree);
  EXPECT_FALSE(tree.probe().nvswitch);
  tree.file("/proc/driver/nvidia-nvswitch/devices/0000:c0:00.0/information", "");
  EXPECT_EQ(tree.probe().fabric_manager, "missing");
  tree.file("/usr/bin/nv-fabricmanager", "");
  EXPECT_EQ(tree.probe().fabric_manager, "inactive");
  tree.process(900, "nv-fabricmanage", 1, 0);
  EXPECT_EQ(tree.probe().fabric_manager, "active");
}

}  // namespace
}  // namespace phalanx::machine::test
