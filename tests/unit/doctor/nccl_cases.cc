#include "cases.h"

namespace phalanx::doctor::test {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// On every host; on the first only.
auto everywhere(Variables set) {
  return [set](Situation& s) {
    for (HostView& h : s.hosts)
      for (const auto& [name, value] : set) h.facts.software.environment[name] = value;
  };
}
auto on_first(Variables set) {
  return [set](Situation& s) {
    for (const auto& [name, value] : set) s.hosts[0].facts.software.environment[name] = value;
  };
}
auto nothing() {
  return [](Situation&) {};
}

void names(std::vector<Case>& all) {
  auto ib = bond_infiniband;
  all.push_back(hit("NCCL-MISSPELLED", "one letter missing", ib, on_first({{"NCCL_SOCKET_IFNAM", "ib0"}})));
  all.push_back(
      hit("NCCL-MISSPELLED", "the user's own, lower case", ib, [](Situation& s) { s.job.set.emplace_back("NCCL_DEBUg", "INFO"); }));
  all.push_back(miss("NCCL-MISSPELLED", "the right names", ib,
                     everywhere({{"NCCL_SOCKET_IFNAME", "ib"}, {"NCCL_DEBUG", "INFO"}, {"NCCL_IB_TC", "106"}})));
  all.push_back(miss("NCCL-MISSPELLED", "a variable of the CUDA image", ib, everywhere({{"NCCL_VERSION", "2.18.3-1"}})));
  all.push_back(hit("NCCL-UNKNOWN-VARIABLE", "a timeout that NCCL never had", ib, everywhere({{"NCCL_TIMEOUT", "1800"}})));
  all.push_back(hit("NCCL-UNKNOWN-VARIABLE", "nothing like it exists", ib, everywhere({{"NCCL_FASTER_PLEASE", "1"}})));
  all.push_back(miss("NCCL-UNKNOWN-VARIABLE", "a plugin's and an image's own", ib,
                     everywhere({{"NCCL_FASTRAK_IFNAME", "eth1"}, {"NCCL_VERSION", "2.18.3-1"}})));
  all.push_back(hit("NCCL-RENAMED", "torch 2.4 and the old name", ib, everywhere({{"NCCL_ASYNC_ERROR_HANDLING", "1"}})));
  all.push_back(miss("NCCL-RENAMED", "torch 2.1 has no other name", ib, [](Situation& s) {
    everywhere({{"NCCL_ASYNC_ERROR_HANDLING", "1"}})(s);
    for (HostView& h : s.hosts) h.facts.software.packages["torch"] = "2.1.2+cu121";
  }));
  all.push_back(hit("NCCL-REMOVED", "advice for NCCL 2.3", ib, everywhere({{"NCCL_IB_CUDA_SUPPORT", "1"}})));
  all.push_back(miss("NCCL-REMOVED", "still there in 2.20", ib, everywhere({{"NCCL_WORK_FIFO_DEPTH", "65536"}})));
  all.push_back(hit("NCCL-TOO-NEW", "2.24's RAS with 2.20", ib, everywhere({{"NCCL_RAS_ENABLE", "0"}})));
  all.push_back(miss("NCCL-TOO-NEW", "2.18's cuMem with 2.20", ib, everywhere({{"NCCL_CUMEM_ENABLE", "0"}})));
  all.push_back(hit("NCCL-NOT-A-NUMBER", "true is 0", ib, everywhere({{"NCCL_P2P_PXN_LEVEL", "true"}})));
  all.push_back(hit("NCCL-NOT-A-NUMBER", "octal", ib, everywhere({{"NCCL_IB_GID_INDEX", "010"}})));
  all.push_back(hit("NCCL-NOT-A-NUMBER", "a unit", ib, everywhere({{"NCCL_BUFFSIZE", "8M"}})));
  all.push_back(
      miss("NCCL-NOT-A-NUMBER", "plain, negative, hex, empty, and a text variable", ib,
           everywhere({{"NCCL_IB_GID_INDEX", "-1"}, {"NCCL_BUFFSIZE", "0x800000"}, {"NCCL_IB_TIMEOUT", ""}, {"NCCL_IB_HCA", "mlx5"}})));
  all.push_back(hit("NCCL-RANGE", "13 retries, as copied", ib, everywhere({{"NCCL_IB_RETRY_CNT", "13"}})));
  all.push_back(hit("NCCL-RANGE", "a timeout that never ends", ib, everywhere({{"NCCL_IB_TIMEOUT", "32"}})));
  all.push_back(miss("NCCL-RANGE", "the largest of each", ib, everywhere({{"NCCL_IB_RETRY_CNT", "7"}, {"NCCL_IB_TIMEOUT", "31"}})));
  all.push_back(hit("NCCL-WORD", "a level that is none", ib, everywhere({{"NCCL_DEBUG", "DEBUG"}})));
  all.push_back(hit("NCCL-WORD", "a protocol that is none", ib, everywhere({{"NCCL_PROTO", "Simple,LL64"}})));
  all.push_back(
      miss("NCCL-WORD", "case and lists", ib,
           everywhere({{"NCCL_DEBUG", "info"}, {"NCCL_DEBUG_SUBSYS", "INIT,NET"}, {"NCCL_ALGO", "allreduce:^tree;broadcast:ring"}})));
}

void transports(std::vector<Case>& all) {
  auto ib = bond_infiniband;
  all.push_back(hit("NCCL-NET-DISABLED", "both", ib, everywhere({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "1"}})));
  all.push_back(
      miss("NCCL-NET-DISABLED", "\"true\" switches nothing off", ib, everywhere({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "true"}})));
  all.push_back(miss("NCCL-NET-DISABLED", "no GPU job", plain_ethernet, everywhere({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "1"}})));
  all.push_back(hit("NCCL-CONTRADICTION", "more channels at least than at most", ib,
                    everywhere({{"NCCL_MIN_NCHANNELS", "32"}, {"NCCL_MAX_NCHANNELS", "16"}})));
  all.push_back(
      hit("NCCL-CONTRADICTION", "too many sockets", ib, everywhere({{"NCCL_SOCKET_NTHREADS", "16"}, {"NCCL_NSOCKS_PERTHREAD", "8"}})));
  all.push_back(miss(
      "NCCL-CONTRADICTION", "just as many as allowed", ib,
      everywhere(
          {{"NCCL_SOCKET_NTHREADS", "8"}, {"NCCL_NSOCKS_PERTHREAD", "8"}, {"NCCL_MIN_NCHANNELS", "16"}, {"NCCL_MAX_NCHANNELS", "16"}})));
  all.push_back(
      hit("NCCL-IB-IGNORED", "HCA chosen, InfiniBand off", ib, everywhere({{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5_0"}})));
  all.push_back(
      miss("NCCL-IB-IGNORED", "HCA chosen, InfiniBand on", ib, everywhere({{"NCCL_IB_DISABLE", "0"}, {"NCCL_IB_HCA", "mlx5_0"}})));
  all.push_back(hit("NCCL-IB-OFF", "switched off with ACTIVE ports", ib, everywhere({{"NCCL_IB_DISABLE", "1"}})));
  all.push_back(miss("NCCL-IB-OFF", "switched off where there is none", docker_host_network, everywhere({{"NCCL_IB_DISABLE", "1"}})));
  all.push_back(hit("NCCL-TRANSPORT-DIFFERS", "off on one host", ib, on_first({{"NCCL_IB_DISABLE", "1"}})));
  all.push_back(miss("NCCL-TRANSPORT-DIFFERS", "off on all", ib, everywhere({{"NCCL_IB_DISABLE", "1"}})));
  all.push_back(
      miss("NCCL-TRANSPORT-DIFFERS", "off on one host, and none anywhere", docker_host_network, on_first({{"NCCL_IB_DISABLE", "1"}})));
  all.push_back(hit("NCCL-P2P-OFF", "NVLink left unused", ib, everywhere({{"NCCL_P2P_DISABLE", "1"}})));
  all.push_back(miss("NCCL-P2P-OFF", "consumer cards have none", single_machine, everywhere({{"NCCL_P2P_DISABLE", "1"}})));
  all.push_back(hit("NCCL-SHM-OFF", "consumer cards", single_machine, everywhere({{"NCCL_SHM_DISABLE", "1"}})));
  all.push_back(miss("NCCL-SHM-OFF", "NVLink does it", ib, everywhere({{"NCCL_SHM_DISABLE", "1"}})));
  auto odd_card = [](Situation& s) {
    s.hosts[0].facts.gpus.devices[1].name = "NVIDIA GeForce GT 1030";
    everywhere({{"NCCL_P2P_DISABLE", "1"}})(s);
  };
  all.push_back(hit("NCCL-HIDES-NOTHING", "a display card", single_machine, odd_card));
  all.push_back(miss("NCCL-HIDES-NOTHING", "equal cards", single_machine, everywhere({{"NCCL_P2P_DISABLE", "1"}})));
  auto nvls = [](const char* version) {
    return [version](Situation& s) {
      for (HostView& h : s.hosts) h.facts.software.nccl[0].version = version;
      s.hosts[2].facts.gpus.fabric_manager = "inactive";
    };
  };
  all.push_back(hit("NCCL-NVLS", "fabric manager down on one host", ib, nvls("2.27.5+cuda12.8")));
  all.push_back(miss("NCCL-NVLS", "2.20 does not fall back silently", ib, nvls("2.20.5+cuda12.4")));
}

void habits(std::vector<Case>& all) {
  auto ib = bond_infiniband;
  all.push_back(hit("NCCL-WATCHDOG-OFF", "left on", ib, everywhere({{"TORCH_NCCL_BLOCKING_WAIT", "1"}})));
  all.push_back(miss("NCCL-WATCHDOG-OFF", "off", ib, everywhere({{"TORCH_NCCL_BLOCKING_WAIT", "0"}})));
  all.push_back(hit("NCCL-ASYNC-OFF", "off by the old name", ib, everywhere({{"NCCL_ASYNC_ERROR_HANDLING", "0"}})));
  all.push_back(miss("NCCL-ASYNC-OFF", "on", ib, everywhere({{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}})));
  all.push_back(hit("NCCL-NO-RECORDER", "size 0", ib, everywhere({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "0"}})));
  all.push_back(miss("NCCL-NO-RECORDER", "size 2000", ib, everywhere({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"}})));
  all.push_back(hit("NCCL-DEBUG-LEFT", "every collective", ib, everywhere({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "ALL"}})));
  all.push_back(hit("NCCL-DEBUG-LEFT", "torch's own", ib, everywhere({{"TORCH_DISTRIBUTED_DEBUG", "DETAIL"}})));
  all.push_back(
      miss("NCCL-DEBUG-LEFT", "INFO as recommended", ib, everywhere({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,NET"}})));
  all.push_back(hit("NCCL-DEBUG-FILE", "one file for eight ranks", ib, everywhere({{"NCCL_DEBUG_FILE", "/tmp/nccl.%h.log"}})));
  all.push_back(miss("NCCL-DEBUG-FILE", "one per process", ib, everywhere({{"NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p.log"}})));
  all.push_back(hit("NCCL-LL128", "named", ib, everywhere({{"NCCL_PROTO", "LL128,Simple"}})));
  all.push_back(miss("NCCL-LL128", "excluded", ib, everywhere({{"NCCL_PROTO", "^LL128"}})));
  all.push_back(hit("NCCL-ALGO", "Ring only", ib, everywhere({{"NCCL_ALGO", "Ring"}})));
  all.push_back(miss("NCCL-ALGO", "unset", ib, nothing()));
  all.push_back(hit("NCCL-LAUNCH-BLOCKING", "left on", ib, everywhere({{"CUDA_LAUNCH_BLOCKING", "1"}})));
  all.push_back(miss("NCCL-LAUNCH-BLOCKING", "off", ib, everywhere({{"CUDA_LAUNCH_BLOCKING", "0"}})));
  all.push_back(hit("NCCL-COMM-ID", "set by hand", ib, everywhere({{"NCCL_COMM_ID", "10.1.0.11:29501"}})));
  all.push_back(miss("NCCL-COMM-ID", "unset", ib, nothing()));
}

void libraries(std::vector<Case>& all) {
  auto ib = bond_infiniband;
  auto version = [](const char* text) { return [text](Situation& s) { s.hosts[1].facts.software.nccl[0].version = text; }; };
  all.push_back(hit("NCCL-VERSION-DIFFERS", "one host upgraded", ib, version("2.21.5+cuda12.4")));
  all.push_back(miss("NCCL-VERSION-DIFFERS", "the same for another CUDA", ib, version("2.20.5+cuda12.2")));
  all.push_back(miss("NCCL-VERSION-DIFFERS", "version not known on one host", ib, version("")));
  all.push_back(hit("NCCL-BUILD-DIFFERS", "another CUDA", ib, version("2.20.5+cuda12.2")));
  all.push_back(miss("NCCL-BUILD-DIFFERS", "equal", ib, nothing()));
  auto before = [](const char* other, const char* way) {
    return [other, way](Situation& s) {
      machine::SoftwareFacts& f = s.hosts[1].facts.software;
      f.nccl.insert(f.nccl.begin(), {"/opt/nccl/lib/libnccl.so.2", other});
      f.nccl_ways = {way, "RUNPATH of libtorch_cuda.so"};
    };
  };
  all.push_back(hit("NCCL-SHADOWED", "an old one in LD_LIBRARY_PATH", ib, before("2.14.3+cuda11.7", "LD_LIBRARY_PATH")));
  all.push_back(miss("NCCL-SHADOWED", "a newer one, on purpose", ib, before("2.21.5+cuda12.4", "LD_LIBRARY_PATH")));
  auto none = [](bool assumed) {
    return [assumed](Situation& s) {
      machine::SoftwareFacts& f = s.hosts[3].facts.software;
      f.nccl.clear();
      f.torch_nccl = "dynamic";
      f.assumed = assumed;
    };
  };
  all.push_back(hit("NCCL-MISSING", "a copied environment without it", ib, none(false)));
  all.push_back(miss("NCCL-MISSING", "built in", ib, [](Situation& s) {
    s.hosts[3].facts.software.nccl.clear();
    s.hosts[3].facts.software.torch_nccl = "static";
  }));
  all.push_back(miss("NCCL-MISSING", "which Python a shell script takes is not known", ib, none(true)));
  all.push_back(hit("NCCL-OLD", "2.10", ib, version("2.10.3+cuda11.3")));
  all.push_back(miss("NCCL-OLD", "2.12", ib, version("2.12.12+cuda11.6")));
}

void files(std::vector<Case>& all) {
  auto ib = bond_infiniband;
  auto conf = [](std::map<std::string, std::string> lines, bool one) {
    return [lines, one](Situation& s) {
      for (HostView& h : s.hosts) {
        h.facts.software.nccl_conf = lines;
        h.facts.software.nccl_conf_file = "/etc/nccl.conf";
        if (one) return;
      }
    };
  };
  all.push_back(hit("NCCL-CONF-FILE", "on all hosts", ib, conf({{"NCCL_DEBUG", "WARN"}}, false)));
  all.push_back(miss("NCCL-CONF-FILE", "a file of comments", ib, conf({}, false)));
  all.push_back(hit("NCCL-CONF-DIFFERS", "one host has it", ib, conf({{"NCCL_ALGO", "Ring"}}, true)));
  all.push_back(miss("NCCL-CONF-DIFFERS", "all have it", ib, conf({{"NCCL_ALGO", "Ring"}}, false)));
  all.push_back(hit("NCCL-CONF-BLANKS", "blanks around =", ib, conf({{"NCCL_DEBUG ", " WARN"}}, false)));
  all.push_back(miss("NCCL-CONF-BLANKS", "no blanks", ib, conf({{"NCCL_DEBUG", "WARN"}}, false)));
  all.push_back(hit("NCCL-CONF-MISSING", "the file is on no host", ib, everywhere({{"NCCL_CONF_FILE", "/home/train/nccl.conf"}})));
  all.push_back(miss("NCCL-CONF-MISSING", "the file is there", ib, [](Situation& s) {
    everywhere({{"NCCL_CONF_FILE", "/home/train/nccl.conf"}})(s);
    for (HostView& h : s.hosts) h.facts.software.nccl_conf_file = "/home/train/nccl.conf";
  }));
  all.push_back(hit("NCCL-SETTINGS-DIFFER", "a protocol on one host", ib, on_first({{"NCCL_PROTO", "Simple"}})));
  all.push_back(
      miss("NCCL-SETTINGS-DIFFER", "interfaces may differ", ib, on_first({{"NCCL_SOCKET_IFNAME", "bond0"}, {"NCCL_VERSION", "2.18"}})));
  all.push_back(miss("NCCL-SETTINGS-DIFFER", "the same everywhere", ib, everywhere({{"NCCL_PROTO", "Simple"}})));
}

}  // namespace

std::vector<Case> nccl_cases() {
  std::vector<Case> all;
  for (auto* part : {names, transports, habits, libraries, files}) part(all);
  return all;
}

}  // namespace phalanx::doctor::test
