// What stands beside a GPU: its processes, the links above and between GPUs, lines of the kernel log. (machine/gpu/facts.h)
#pragma once

#include <cstdint>
#include <string>

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
template <typename V>
void fields(V& v, GpuProcess& f) {
  v("pid", f.pid);
  v("used_bytes", f.used_bytes);
  v("name", f.name);
  v("user", f.user);
  v("parent", f.parent);
  v("age_s", f.age_s);
  v("visible", f.visible);
}

// One hop of a device's PCIe path, the device itself first, then the bridges above it.
struct PcieLink {
  std::string address;           // "0000:3b:00.0"
  std::string speed, max_speed;  // GT/s as text of sysfs: "16.0 GT/s PCIe"
  int64_t width = 0, max_width = 0;
  bool acs_redirects = false;  // ACS source validation or P2P redirection is on (bridges)
};
template <typename V>
void fields(V& v, PcieLink& f) {
  v("address", f.address);
  v("speed", f.speed);
  v("max_speed", f.max_speed);
  v("width", f.width);
  v("max_width", f.max_width);
  v("acs_redirects", f.acs_redirects);
}

struct NvLink {
  int64_t link = 0;
  bool active = false;
  int64_t errors = 0;  // replay + recovery + CRC
  std::string remote;  // PCI address of the other end; empty: unknown
  bool to_switch = false;
};
template <typename V>
void fields(V& v, NvLink& f) {
  v("link", f.link);
  v("active", f.active);
  v("remote", f.remote);
  v("to_switch", f.to_switch);
  v("errors", f.errors);
}

// A pair of GPUs of one machine.
struct GpuPair {
  int64_t a = 0, b = 0;  // indices
  std::string p2p_read;  // "ok", "chipset not supported", "disabled by regkey", …; NVML's GPU P2P status
  std::string p2p_write;
  std::string path;  // "NV4", "PIX", "PXB", "PHB", "NODE", "SYS"
};
template <typename V>
void fields(V& v, GpuPair& f) {
  v("a", f.a);
  v("b", f.b);
  v("p2p_read", f.p2p_read);
  v("p2p_write", f.p2p_write);
  v("path", f.path);
}

// A line of the kernel's log about a GPU or NVSwitch.
struct Xid {
  std::string pci;
  int64_t xid = 0;
  bool nvswitch = false;  // an SXid
  std::string line;
  int64_t age_s = -1;  // before the probe; -1: unknown
};
template <typename V>
void fields(V& v, Xid& f) {
  v("pci", f.pci);
  v("xid", f.xid);
  v("nvswitch", f.nvswitch);
  v("line", f.line);
  v("age_s", f.age_s);
}

}  // namespace phalanx::machine
