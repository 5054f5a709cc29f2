// What stands beside a GPU: its processes, the links above and between GPUs, lines of the kernel log. (machine/gpu/facts.h)
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace phalanx::machine {

struct GpuProcess {
  int64_t pid = 0;
  int64_t used_bytes = 0;
  std::string name;  // comm, empty when the pid is not visible (another pid namespace)
  std::string user;
  int64_t parent = 0;  // 1: an orphan
  int64_t age_s = 0;
  bool visible = false;  // /proc/<pid> exists here
};
PHALANX_FIELDS(GpuProcess, pid, used_bytes, name, user, parent, age_s, visible);

// One hop of a device's PCIe path, the device itself first, then the bridges above it.
struct PcieLink {
  std::string address;           // "0000:3b:00.0"
  std::string speed, max_speed;  // GT/s as text of sysfs: "16.0 GT/s PCIe"
  int64_t width = 0, max_width = 0;
  bool acs_redirects = false;  // ACS source validation or P2P redirection is on (bridges)
};
PHALANX_FIELDS(PcieLink, address, speed, max_speed, width, max_width, acs_redirects);

struct NvLink {
  int64_t link = 0;
  bool active = false;
  int64_t errors = 0;  // replay + recovery + CRC
  std::string remote;  // PCI address of the other end; empty: unknown
  bool to_switch = false;
};
PHALANX_FIELDS(NvLink, link, active, remote, to_switch, errors);

// A pair of GPUs of one machine.
struct GpuPair {
  int64_t a = 0, b = 0;  // indices
  std::string p2p_read;  // "ok", "chipset not supported", "disabled by regkey", …; NVML's GPU P2P status
  std::string p2p_write;
  std::string path;  // "NV4", "PIX", "PXB", "PHB", "NODE", "SYS"
};
PHALANX_FIELDS(GpuPair, a, b, p2p_read, p2p_write, path);

// A line of the kernel's log about a GPU or NVSwitch.
struct Xid {
  std::string pci;
  int64_t xid = 0;
  bool nvswitch = false;  // an SXid
  std::string line;
  int64_t age_s = -1;  // before the probe; -1: unknown
};
PHALANX_FIELDS(Xid, pci, xid, nvswitch, line, age_s);

}  // namespace phalanx::machine
