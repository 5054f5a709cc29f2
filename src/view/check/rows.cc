// Rows about the machine itself; those about the job are in view/check/rows_job.cc.
#include "view/check/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/name_ranges.h"
#include "base/text.h"
#include "view/check/row_list.h"

namespace phalanx::view {
namespace {

using doctor::HostView;
using words::Text;
using words::tr;

constexpr Text kNone{"none"};

std::string short_distribution(std::string name) {
  name = base::replace_all(name, "GNU/Linux ", "");
  return safe_text(name.substr(0, name.find(" (")));
}

void add_machine(RowList& rows) {
  base::Language language = rows.language();
  std::vector<std::string> texts = rows.each([language](const HostView& host) {
    const machine::Machine& m = host.facts.machine;
    std::string cpus;
    if (m.cpus_usable > 0 && m.cpus_usable < m.cpus_online) cpus = tr(language, "{} of {} CPUs", m.cpus_usable, m.cpus_online);
    else if (m.cpus_online > 0) cpus = tr(language, "{} CPUs", m.cpus_online);
    std::string architecture = m.architecture == "x86_64" ? "" : safe_text(m.architecture);
    return join_parts({short_distribution(m.distribution), architecture, cpus, safe_text(m.container)});
  });
  std::vector<int64_t> memory;
  for (const HostView& host : rows.situation().hosts) memory.push_back(host.probed ? host.facts.machine.memory_bytes : 0);
  std::vector<std::string> keys = texts, sizes = about_keys(memory);
  for (size_t h = 0; h < keys.size(); ++h) keys[h] += sizes[h].empty() ? "" : "|" + sizes[h];
  rows.add(Text{"machine"}, keys, [texts, memory](const Hosts& hosts) {
    return join_parts({texts[hosts[0]], memory[hosts[0]] > 0 ? bytes_span(hosts, memory) : ""});
  });
}

// "NVIDIA GeForce RTX 3090" → "RTX 3090 24 GiB"; no memory where the name tells it.
std::string short_gpu(const machine::Gpu& gpu) {
  std::string name = gpu.name;
  for (std::string_view word : {"NVIDIA ", "GeForce ", "Tesla "})
    if (name.starts_with(word)) name.erase(0, word.size());
  if (name.find("GB") == std::string::npos && gpu.memory_bytes > 0)
    name += fmt::format(" {:.0f} GiB", std::max(1.0, std::round(static_cast<double>(gpu.memory_bytes) / 0x1p30)));
  return safe_text(name);
}

void add_gpus(RowList& rows) {
  base::Language language = rows.language();
  rows.plain(Text{"GPUs"}, [language](const HostView& host) {
    const machine::GpuFacts& g = host.facts.gpus;
    if (g.devices.empty() && g.pci_devices > 0) return tr(language, "{} on the PCI bus, none usable", g.pci_devices);
    if (g.devices.empty()) return std::string(kNone.in(language));
    std::vector<std::string> names;
    int64_t busy = 0;
    std::string faults;
    for (const machine::Gpu& gpu : g.devices) {
      names.push_back(short_gpu(gpu));
      if (!gpu.processes.empty()) ++busy;
      if (!gpu.fault.empty()) faults += fmt::format("{}GPU {}: {}", faults.empty() ? "" : ", ", gpu.index, safe_text(gpu.fault));
    }
    std::string in_use = busy ? tr(language, "{} in use", busy) : "";
    return join_parts({counted(names), in_use, faults});
  });
  rows.plain(Text{"driver"}, [](const HostView& host) {
    const machine::GpuFacts& g = host.facts.gpus;
    std::string cuda = g.cuda_driver > 0 ? fmt::format("CUDA {}.{}", g.cuda_driver / 1000, g.cuda_driver % 1000 / 10) : "";
    return join_parts({safe_text(g.driver.empty() ? g.kernel_module : g.driver), cuda, safe_text(g.nvml_error)});
  });
}

// The interface the job would use: the chosen one, else the one Gloo or c10d would take.
const machine::Interface* used_interface(const HostView& host) {
  std::string name = host.interface;
  for (const machine::SocketChoice& choice : host.facts.network.choices)
    if (name.empty() && choice.library != "nccl") name = choice.interface;
  for (const machine::Interface& i : host.facts.network.interfaces)
    if (i.name == name) return &i;
  return nullptr;
}

// "10.1.0.[11-14]"; a few words at most.
std::string folded_addresses(const std::vector<std::string>& addresses) {
  constexpr size_t kShown = 2;
  std::vector<std::string> words = base::fold_names(addresses);
  if (words.size() > kShown) {
    words.resize(kShown);
    words.push_back("…");
  }
  return base::join(words, ", ");
}

void add_network(RowList& rows) {
  std::string down(Text{"down"}.in(rows.language()));
  std::vector<std::string> texts = rows.each([&down](const HostView& host) {
    const machine::Interface* i = used_interface(host);
    if (!i) return host.interface;
    return join_parts({safe_text(i->name), speed_text(static_cast<double>(i->speed_mbps)),
                       i->mtu > 0 && !i->loopback ? fmt::format("MTU {}", i->mtu) : "", i->up ? "" : down});
  });
  std::vector<std::string> addresses = rows.each([](const HostView& host) {
    const machine::Interface* i = used_interface(host);
    if (!host.address.empty() || !i || i->addresses.empty()) return host.address;
    return i->addresses[0].address;
  });
  rows.add(Text{"network"}, texts, [texts, addresses](const Hosts& hosts) {
    std::vector<std::string> own;
    for (size_t h : hosts)
      if (!addresses[h].empty()) own.push_back(safe_text(addresses[h]));
    return join_parts({texts[hosts[0]], folded_addresses(own)});
  });
}

void add_infiniband(RowList& rows) {
  const auto& hosts = rows.situation().hosts;
  if (std::all_of(hosts.begin(), hosts.end(), [](const HostView& h) { return h.facts.infiniband.devices.empty(); })) return;
  base::Language language = rows.language();
  rows.plain(Text{"InfiniBand"}, [language](const HostView& host) {
    std::vector<std::string> ports;
    for (const machine::IbDevice& device : host.facts.infiniband.devices)
      for (const machine::IbPort& port : device.ports) {
        std::string kind = port.link_layer == "Ethernet" ? "RoCE " : "";
        std::string speed = speed_text(port.rate_gbps * 1000);
        ports.push_back(fmt::format("{}{}{}{}", kind, speed, speed.empty() ? "" : " ", safe_text(port.state)));
      }
    return ports.empty() ? std::string(kNone.in(language)) : counted(ports);
  });
}

}  // namespace

std::vector<CheckRow> check_rows(const doctor::Situation& situation, base::Language language) {
  RowList rows(situation, language);
  add_machine(rows);
  add_gpus(rows);
  add_network(rows);
  add_infiniband(rows);
  add_software(rows);
  add_storage(rows);
  add_limits(rows);
  add_clock(rows);
  add_gaps(rows);
  return rows.take();
}

}  // namespace phalanx::view
