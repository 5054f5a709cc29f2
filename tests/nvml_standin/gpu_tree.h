// A folder that stands in for a machine with GPUs: /proc, /sys, /dev, the kernel log, and at the driver's usual place the stand-in NVML
// library with its description. machine::probe_gpus with this root runs the real helper against it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/probe.h"

namespace phalanx::machine::test {

struct TreeGpu {
  std::string name = "NVIDIA GeForce RTX 3090", uuid, pci = "0000:01:00.0", cc = "8.6";
  int64_t cores = 10496, memory_mib = 24576, clock_max = 2100;
  std::vector<std::string> bridges;         // above it, root port first: "0000:00:01.0"
  std::string root_complex = "pci0000:00";  // folder of sysfs
  int64_t width = 16, max_width = 16, bridge_width = 16, bridge_max_width = 16, numa_node = 0;
  std::string lines;  // more lines of the description: "throttle 0x80\nprocess 4711 20000\n"
};

std::string description(const TreeGpu& gpu);  // its lines of nvml.txt

class GpuTree {
 public:
  GpuTree();
  ~GpuTree();
  GpuTree(const GpuTree&) = delete;
  GpuTree& operator=(const GpuTree&) = delete;

  const std::string& root() const { return root_; }
  void driver(const std::string& library_version, const std::string& module_version);  // of a proprietary kernel module
  void add(const TreeGpu& gpu);
  void describe(const std::string& lines) { head_ += lines; }  // of the driver as a whole: "init 18\n"
  void pairs(const std::string& lines) { tail_ += lines; }
  void file(const std::string& path, const std::string& content);
  void process(int64_t pid, const std::string& name, int64_t parent, int64_t uid);
  void use_old_library() { old_ = true; }
  GpuFacts probe(std::chrono::milliseconds deadline = std::chrono::milliseconds(1500));

 private:
  void write_library();

  std::string root_, head_, gpus_, tail_, library_version_;
  bool old_ = false, has_library_ = false;
};

// The three machines of the shows.
void field_note_machine(GpuTree& tree);  // RTX 3090, GT 1030, RTX 3090: the first field note
void two_3090(GpuTree& tree, const std::string& second_lines = "");

}  // namespace phalanx::machine::test
