// Where the facts of the GPUs come from. machine/gpu/probe.cc asks these one after another; each adds what it knows to the facts and leaves
// the rest alone. Everything they read is outside input: bounded, and never trusted to be well formed.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "machine/gpu/facts.h"
#include "machine/probe.h"

namespace phalanx::machine {

// NVML, asked by the helper program (nvml_image.h) within the deadline. On a hang or a crash what came before it is kept and
// nvml_error says what happened. False: there is no NVML library, or the helper could not be run at all.
bool ask_nvml(const ProbeRequest& request, std::chrono::milliseconds deadline, GpuFacts& facts);
// What the helper prints: one JSON object a line.
void read_nvml_lines(std::string_view output, GpuFacts& facts);

// nvidia-smi --query-gpu, where NVML could not be loaded. False: there is none, or it did not answer.
bool ask_smi(const ProbeRequest& request, std::chrono::milliseconds deadline, GpuFacts& facts);
// Its table, first line: names of the columns. False: no such table.
bool read_smi_table(std::string_view csv, GpuFacts& facts);

// /proc/driver/nvidia and /dev: the kernel module's version, device nodes; the GPUs themselves where nobody else named any.
void read_driver_files(const std::string& root, GpuFacts& facts);
// The version a library file of the driver carries in its name: "libnvidia-ml.so.535.129.03". Empty if none is found.
std::string driver_library_version(const std::string& root);

// /sys/bus/pci: devices, the links above each GPU, ACS, IOMMU, NUMA node, NVSwitches; /proc/modules.
void read_pci(const std::string& root, GpuFacts& facts);
// Fills GpuPair::path where it is empty, adding the pairs that are missing: NVLinks first, else the way through the PCI tree.
void find_paths(const std::string& root, GpuFacts& facts);

// Who the processes on the GPUs are: name, user, parent, age from /proc.
void describe_gpu_processes(const std::string& root, GpuFacts& facts);
void find_fabric_manager(const std::string& root, GpuFacts& facts);

// Xid and SXid lines: from the kernel's ring buffer, else from the system's log files.
void read_kernel_log(const std::string& root, GpuFacts& facts);
// Any of the forms a kernel log has: records of /dev/kmsg, "[ 12.345678] …", lines of syslog. uptime_s < 0: unknown; lines that
// are older than that are from before this boot and left out.
std::vector<Xid> parse_kernel_log(std::string_view text, double uptime_s, int64_t now_s);

}  // namespace phalanx::machine
