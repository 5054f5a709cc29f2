#include "doctor/verbs.h"

#include <fmt/format.h>

namespace phalanx::doctor {

std::vector<LivePort> live_ports(const machine::InfinibandFacts& facts) {
  std::vector<LivePort> live;
  for (const machine::IbDevice& device : facts.devices)
    for (const machine::IbPort& port : device.ports)
      if (port.state == "ACTIVE") live.push_back({&device, &port});
  return live;
}

bool verbs_usable(const machine::InfinibandFacts& facts) { return facts.uverbs && !facts.libibverbs.empty() && !live_ports(facts).empty(); }

Words why_no_verbs(const machine::InfinibandFacts& facts) {
  if (facts.devices.empty()) return {"no InfiniBand or RoCE device", "没有 InfiniBand 或 RoCE 设备"};
  if (live_ports(facts).empty()) {
    for (const machine::IbDevice& device : facts.devices)
      for (const machine::IbPort& port : device.ports) {
        bool init = port.state == "INIT";
        return {fmt::format("{} port {} is {}{}", device.name, port.port, port.state.empty() ? "in an unknown state" : port.state,
                            init                      ? ": no subnet manager has set it up"
                            : port.phys_state.empty() ? ""
                                                      : " (" + port.phys_state + ")"),
                fmt::format("{} 端口 {} 处于 {} 状态{}", device.name, port.port, port.state.empty() ? "未知" : port.state,
                            init                      ? "：没有子网管理器为其配置"
                            : port.phys_state.empty() ? ""
                                                      : "（" + port.phys_state + "）")};
      }
    return {"no port", "没有端口"};
  }
  if (!facts.uverbs) return {"no /dev/infiniband/uverbs*", "缺少 /dev/infiniband/uverbs*"};
  return {"libibverbs.so.1 is not found", "找不到 libibverbs.so.1"};
}

double live_rate(const machine::InfinibandFacts& facts, bool roce) {
  double sum = 0;
  for (const LivePort& live : live_ports(facts))
    if (live.roce() == roce) sum += live.port->rate_gbps;
  return sum;
}

}  // namespace phalanx::doctor
