#include "gpu_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace phalanx::machine::test {
namespace fs = std::filesystem;

GpuTree::GpuTree() {
  std::string name = (fs::temp_directory_path() / "phalanx-gpus-XXXXXX").string();
  if (::mkdtemp(name.data())) root_ = name;
  EXPECT_FALSE(root_.empty());
  file("/proc/uptime", "100000.00 0.00\n");
  file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nanna:x:1001:1001::/home/anna:/bin/bash\n");
}
GpuTree::~GpuTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void GpuTree::file(const std::string& path, const std::string& content) {
  fs::path at = root_ + path;
  fs::create_directories(at.parent_path());
  std::ofstream(at, std::ios::binary) << content;
}

void GpuTree::driver(const std::string& library_version, const std::string& module_version) {
  has_library_ = true;
  library_version_ = library_version;
  head_ += "driver " + library_version + "\ncuda 12020\n";
  file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + module_version +
                                          "  Thu Oct 19 18:56:32 UTC 2023\nGCC version: gcc version 12.2.0\n");
  file("/proc/modules", "nvidia_uvm 1523712 0 - Live 0x0\nnvidia 56623104 2 nvidia_uvm, Live 0x0 (POE)\nveth 36864 0 - Live 0x0\n");
  file("/dev/nvidia-uvm", "");
  file("/dev/nvidiactl", "");
}

std::string description(const TreeGpu& g) {
  return fmt::format("gpu\nname {}\nuuid {}\npci {}\ncc {}\ncores {}\nmemory {}\nclock_sm_max {}\n", g.name, g.uuid, g.pci, g.cc, g.cores,
                     g.memory_mib, g.clock_max) +
         "persistence 1\ncompute_mode 0\ntemperature 35\npower 30000\npower_limit 350000\npower_default 350000\nthrottle 1\nutilization "
         "0\nused 4\n" +
         g.lines;
}

void GpuTree::add(const TreeGpu& g) {
  gpus_ += description(g);
  std::string folder = "/sys/devices/" + g.root_complex;
  for (const std::string& bridge : g.bridges) {
    folder += "/" + bridge;
    file(folder + "/current_link_width", std::to_string(g.bridge_width) + "\n");
    file(folder + "/max_link_width", std::to_string(g.bridge_max_width) + "\n");
    file(folder + "/current_link_speed", "16.0 GT/s PCIe\n");
    file(folder + "/max_link_speed", "16.0 GT/s PCIe\n");
  }
  folder += "/" + g.pci;
  file(folder + "/vendor", "0x10de\n");
  file(folder + "/class", "0x030000\n");
  file(folder + "/current_link_width", std::to_string(g.width) + "\n");
  file(folder + "/max_link_width", std::to_string(g.max_width) + "\n");
  file(folder + "/current_link_speed", "2.5 GT/s PCIe\n");
  file(folder + "/max_link_speed", "16.0 GT/s PCIe\n");
  file(folder + "/numa_node", std::to_string(g.numa_node) + "\n");
  file(folder + "/local_cpulist", "0-15\n");
  file(folder + "/config", std::string("\xde\x10\x04\x22", 4) + std::string(60, '\0'));
  fs::create_directories(root_ + "/sys/bus/pci/devices");
  fs::create_directory_symlink("../../../.." + folder, root_ + "/sys/bus/pci/devices/" + g.pci);
  file("/proc/driver/nvidia/gpus/" + g.pci + "/information",
       fmt::format("Model: \t\t {}\nIRQ:   \t\t 60\nGPU UUID: \t {}\n", g.name, g.uuid));
  size_t nodes = 0;
  while (fs::exists(root_ + "/dev/nvidia" + std::to_string(nodes))) ++nodes;
  file("/dev/nvidia" + std::to_string(nodes), "");
}

void GpuTree::process(int64_t pid, const std::string& name, int64_t parent, int64_t uid) {
  std::string folder = "/proc/" + std::to_string(pid);
  file(folder + "/status", fmt::format("Name:\t{}\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t{}\nPPid:\t{}\nUid:\t{}\t{}\t{}\t{}\n", name,
                                       pid, parent, uid, uid, uid, uid));
  file(folder + "/comm", name + "\n");
  file(folder + "/stat",
       fmt::format("{} ({}) S {} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n", pid, name, parent, 100 * (100000 - 7200)));
}

void GpuTree::write_library() {
  std::string folder = root_ + "/usr/lib/x86_64-linux-gnu";
  fs::create_directories(folder);
  std::string file_name = "libnvidia-ml.so." + library_version_;
  fs::copy_file(old_ ? PHALANX_NVML_STANDIN_OLD : PHALANX_NVML_STANDIN, folder + "/" + file_name, fs::copy_options::overwrite_existing);
  std::error_code ignored;
  fs::create_symlink(file_name, folder + "/libnvidia-ml.so.1", ignored);
  file("/usr/lib/x86_64-linux-gnu/nvml.txt", head_ + gpus_ + tail_);
}

GpuFacts GpuTree::probe(std::chrono::milliseconds deadline) {
  if (has_library_) write_library();
  ProbeRequest request;
  request.root = root_;
  request.deadline = deadline;
  return probe_gpus(request);
}

void field_note_machine(GpuTree& tree) {
  tree.driver("535.129.03", "535.129.03");
  TreeGpu big;
  big.uuid = "GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60";
  big.bridges = {"0000:00:01.0"};
  tree.add(big);
  TreeGpu display;
  display.name = "NVIDIA GeForce GT 1030";
  display.uuid = "GPU-addf6be6-9a6e-c331-da9e-b0ab90813984";
  display.pci = "0000:02:00.0";
  display.cc = "6.1";
  display.cores = 384;
  display.memory_mib = 2048;
  display.clock_max = 1911;
  display.bridges = {"0000:00:02.0"};
  display.width = display.max_width = 4;
  display.lines = "display 1\n";
  tree.add(display);
  big.uuid = "GPU-ff67d0d7-648f-d302-c50e-49297407cd04";
  big.pci = "0000:03:00.0";
  big.bridges = {"0000:00:03.0"};
  tree.add(big);
  tree.pairs("p2p 0 1 1 1 30\np2p 0 2 1 1 30\np2p 1 2 1 1 30\n");
}

void two_3090(GpuTree& tree, const std::string& second_lines) {
  tree.driver("535.129.03", "535.129.03");
  TreeGpu g;
  g.uuid = "GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60";
  g.bridges = {"0000:00:01.0"};
  tree.add(g);
  g.uuid = "GPU-ff67d0d7-648f-d302-c50e-49297407cd04";
  g.pci = "0000:02:00.0";
  g.bridges = {"0000:00:02.0"};
  g.lines = second_lines;
  tree.add(g);
  tree.pairs("p2p 0 1 1 1 30\n");
}

}  // namespace phalanx::machine::test
