// What NCCL says of itself in its log: processes, communicators, the ways between ranks, and how far each rank came.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace phalanx::logs {

struct NcclProcess {
  std::string host;
  int64_t pid = 0;
  std::string version;                          // "2.18.1+cuda12.1"; to 2.21 only the first process of a job says it
  std::string bootstrap_interface;              // "bond0"
  std::string bootstrap_address;                // "172.16.12.8"
  std::string plugin;                           // of the network: the library that was loaded; empty: NCCL's own
  std::string network;                          // "Socket", "IB", "AWS Libfabric"
  std::vector<std::string> ib_devices;          // "mlx5_0:1/RoCE", by NCCL's number
  bool ib_none = false;                         // it looked for InfiniBand and found none, or could not load the library
  std::vector<std::string> socket_interfaces;   // "eth0:10.0.0.4"
  std::map<std::string, std::string> settings;  // "NCCL_IB_DISABLE": "1", those that NCCL says it has read
  int devices_without_gdr = 0;                  // NICs that cannot reach a GPU's memory
  std::string first_error;                      // "init.cc:1501 -> 3"
};

// How far a rank has come in a communicator.
struct NcclRank {
  size_t process = 0;  // in NcclTopology::processes
  int cuda_device = -1, nvml_device = -1;
  std::string bus_id;
  bool started = false;    // Init START, since 2.18.3
  bool laid_out = false;   // it knows its rings, trees or nodes: all ranks have met
  bool announced = false;  // it has begun to connect the channels of rings and trees
  bool rings = false, trees = false;
  bool complete = false;  // Init COMPLETE; since 2.22 channels are connected after that, at the first collective
  bool destroyed = false, aborted = false;
  int nodes = 0, local_ranks = 0;  // 0: not said
  int channels = -1, collnet_channels = -1, nvls_channels = -1, p2p_channels = -1;
  std::optional<bool> pxn, gdr;
  double init_seconds = -1, bootstrap_seconds = -1;
  std::string tree;  // of channel 0: "1/-1/-1->0->-1"
  std::string last;  // what it said last
  uint64_t last_line = 0;
};

// From one rank to another. Only a network's way is told by both ends.
struct NcclEdge {
  int from = 0, to = 0;
  std::string transport;            // "P2P/IPC", "SHM/direct/direct", "NET/IB/0/GDRDMA"
  uint64_t sent = 0, received = 0;  // channels, as bits
  int proxy = -1;                   // PXN: the rank whose NIC is used
};

struct NcclCommunicator {
  std::string id;        // "0xc40540e13bf8d8f2"; empty: not known, before 2.16 or because no rank came far enough
  int size = 0;          // 0: not known
  std::string function;  // "ncclCommSplit"
  std::map<int, NcclRank> ranks;
  std::map<std::tuple<int, int, std::string>, NcclEdge> edges;
  int rings = 0;          // how many were told
  std::vector<int> ring;  // the first
  int nvls_tree = 0;      // ranks that connected one
};

struct NcclWarning {
  size_t process = 0;
  int device = -1;
  std::string place, text;
  uint64_t line = 0;  // the first
  int count = 1;
};

struct NcclTopology {
  std::vector<NcclProcess> processes;  // in the order of their first line
  std::vector<std::string> versions;   // said in lines that name no process, each once
  std::vector<NcclCommunicator> communicators;
  std::vector<NcclWarning> warnings;
  std::map<std::string, uint64_t> algorithms;  // "AllReduce RING/LL", told by NCCL_DEBUG_SUBSYS=TUNING: how often
  uint64_t records = 0;                        // lines of NCCL
  uint64_t left_out = 0;                       // pieces beyond the limits
};

}  // namespace phalanx::logs
