// InfiniBand and RoCE under NCCL.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kInfinibandSignatures[] = {
    {"IB-RETRY", Role::kRoot, "Got completion from peer",
     R"(Got completion from peer (?P<address>\S+) with status=(IBV_WC_RETRY_EXC_ERR\()?12)",
     "kp-0:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.6<54862> with status=12 "
     "opcode=0 len=0 vendor err 129 (Recv) localGid fd00::1 remoteGidsfd00::2",
     "Got completion from peer 10.0.0.6<54862> with status=5 opcode=0"},
    {"IB-RETRY", Role::kRoot, "Got completion with error 12", "Got completion with error 12",
     "gpu03:90:401 [2] transport/net_ib.cc:1054 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 32601, "
     "vendor err 129",
     "gpu03:90:401 [2] NCCL WARN NET/IB : Got completion with error 5, opcode 0"},
    {"IB-RETRY", Role::kRoot, "Got completion from peer",
     R"(Got completion from peer (?P<address>\S+) with (status|error) ?=?(IBV_WC_RNR_RETRY_EXC_ERR\()?13)",
     "gpu03:90:401 [2] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.3<52911> with "
     "status=13 opcode=1 len=0 vendor err 135",
     "Got completion from peer 10.0.0.3<52911> with status=5 opcode=0"},
    {"IB-RETRY", Role::kRoot, "Got completion from peer", R"(Got completion from peer (?P<address>\S+) with error 12)",
     "gpu03:90:401 [2] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.3<52911> with "
     "error 12, opcode 32601, len 32600, vendor err 129 (Recv)",
     "Got completion from peer 10.0.0.3<52911> with error 5, opcode 0"},
    {"IB-REMOTE-ACCESS", Role::kRoot, "Got completion from peer",
     R"(Got completion from peer (?P<address>\S+) with (status=|error )(IBV_WC_\w+\()?(10|11|4)\b)",
     "gpu03:90:401 [2] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.3<52911> with "
     "status=10 opcode=0 len=0 vendor err 136",
     "Got completion from peer 10.0.0.3<52911> with status=5 opcode=0"},
    {"LOG-PEER-GONE", Role::kCascade, "Got completion from peer",
     R"(Got completion from peer (?P<address>\S+) with (status=|error )(IBV_WC_\w+\()?5\b)",
     "hostname-test:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.9<44206> with "
     "status=5 opcode=32656 len=32659 vendor err 249 (Recv)",
     "Got completion from peer 10.0.0.9<44206> with status=12 opcode=1"},
    {"IB-ASYNC-EVENT", Role::kRoot, "async fatal event", "NET/IB ?: .*async fatal event",
     "gpu03:90:402 [2] transport/net_ib.cc:120 NCCL WARN NET/IB : mlx5_0:1 async fatal event on device: port error",
     "an async fatal event ended the party"},
    {"IB-ASYNC-EVENT", Role::kRoot, "Got async ",
     "NET/IB ?: .*Got async (error )?event ?: (?P<event>port error|device fatal|local catastrophic|QP)",
     "gpu03:90:402 [2] transport/net_ib.cc:91 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
     "Got async event : client reregistration"},
    {"IB-ASYNC-EVENT", Role::kRoot, "IB_EVENT_PORT_ERR", "IB_EVENT_PORT_ERR|ib_.*port_event.*down",
     "mlx5_core 0000:5e:00.0: mlx5_ib: IB_EVENT_PORT_ERR port 1", "constants: IB_EVENT_PORT_ACTIVE"},
    {"IB-GID-INDEX", Role::kRoot, "Call to ibv_modify_qp failed",
     "Call to ibv_modify_qp failed with (error )?(22 )?(Invalid argument|110 Connection timed out|Connection timed "
     "out|No data available)",
     "gpu03:90:401 [2] misc/ibvwrap.cc:316 NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on dev "
     "mlx5_0:1, curr state INIT, next state RTR, local GID index 3",
     "Call to ibv_modify_qp failed is a message of NCCL"},
    {"IB-GID-INDEX", Role::kRoot, "Call to ibv_modify_qp failed",
     R"(Call to ibv_modify_qp failed with (error )?\d* ?(Connection timed out|Network is unreachable|No such device))",
     "gpu03:90:401 [2] misc/ibvwrap.cc:316 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on "
     "dev mlx5_bond_0:1",
     "Call to ibv_modify_qp succeeded"},
    {"IB-GID-INDEX", Role::kRoot, "Call to ibv_query_gid", "Call to ibv_query_gid(_ex)? failed",
     "gpu03:90:401 [2] misc/ibvwrap.cc:201 NCCL WARN Call to ibv_query_gid failed with error Invalid argument",
     "Call to ibv_query_gid returned 0"},
    {"LIM-MEMLOCK", Role::kRoot, "Call to ibv_",
     R"(Call to ibv_(create_cq|create_qp|reg_mr|reg_mr_iova2|reg_dmabuf_mr|alloc_pd)\S* failed( with error (Cannot )"
     "allocate memory|Operation not permitted)?)?",
     "gpu03:90:401 [2] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
     "Call to ibv_open_device failed"},
    {"IB-MIXED-LINK", Role::kRoot, "Attempted to connect incompatible devices", "Attempted to connect incompatible devices",
     "gpu03:90:401 [2] transport/net_ib.cc:1011 NCCL WARN NET/IB : Attempted to connect incompatible devices: "
     "[0]mlx5_0:1/IB and [1]mlx5_bond_0:1/RoCE. Try selecting NICs of only one link type using NCCL_IB_HCA",
     "incompatible devices are listed below"},
    {"IB-NO-VERBS", Role::kBenign, "Failed to open libibverbs.so", R"(NCCL INFO Failed to open libibverbs\.so)",
     "gpu01:2950111:2950934 [0] NCCL INFO Failed to open libibverbs.so[.1]", "Failed to open libibmad.so"},
    {"IB-HCA-FILTER", Role::kBenign, "NET/IB : No device found", "NCCL INFO NET/IB : No device found",
     "gpu01:90:401 [2] NCCL INFO NET/IB : No device found.", "NET/Socket : No device found."},
    {"IB-PORT-DOWN", Role::kRoot, "Link DOWN", R"(mlx\d_\w+ .*[Pp]ort:? \d+:? Link DOWN)", "mlx5_core 0000:5e:00.0: Port: 1 Link DOWN",
     "the Port: 1 Link DOWN counter is 0"},
};

}  // namespace

std::span<const Signature> infiniband_signatures() { return kInfinibandSignatures; }

}  // namespace diagnosis
