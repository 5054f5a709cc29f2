// The network between hosts: sockets of NCCL, and the kernel's word on links.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kNetworkSignatures[] = {
    {"NET-IFNAME-MISSING", Role::kRoot, "no socket interface found", "Bootstrap ?: no socket interface found",
     "gpu02:4120:4120 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
     "gpu02:4120:4120 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>"},
    {"NET-IFNAME-MISSING", Role::kRoot, "NET/Socket : no interface found", "NET/Socket : no interface found",
     "gpu02:4120:4120 [0] NCCL INFO NET/Socket : no interface found",
     "gpu02:4120:4120 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0>"},
    {"NET-IFNAME-MISSING", Role::kRoot, "No usable listening interface found", "No usable listening interface found",
     "gpu02:4120:4120 [0] misc/socket.cc:456 NCCL WARN No usable listening interface found", "usable listening interface found: eth0"},
    {"NET-IFNAME-MISSING", Role::kRoot, "NET/IB : No IP interface found", "NET/IB : No IP interface found",
     "gpu02:4120:4410 [0] transport/net_ib.cc:190 NCCL WARN NET/IB : No IP interface found.", "NET/IB : No device found."},
    {"NET-IFNAME-MISSING", Role::kRoot, "Unable to find address for: ", R"(Unable to find address for: (?P<interface>\S+))",
     "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to "
     "find address for: bond0",
     "Unable to find address for the parcel"},
    {"NET-IFNAME-MISSING", Role::kRoot, "no socket interface found", "NCCL WARN Bootstrap: no socket interface found",
     "gpu02:4120:4120 [0] bootstrap.cc:45 NCCL WARN Bootstrap: no socket interface found",
     R"(see "no socket interface found" in the manual)"},
    {"NET-LINK-LOCAL", Role::kRoot, "Connect to fe80:", R"(Connect to (?P<address>fe80:\S+) failed)",
     "gpu02:77:501 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to "
     "fe80::ae1f:6bff:fe12:3456%ib1<43215> failed : Cannot assign requested address",
     "gpu02:77:501 [0] NCCL INFO connected to fe80::1"},
    {"NET-NO-ROUTE", Role::kRoot, "failed : No route to host", R"([Cc]onnect to (?P<address>\S+) failed : No route to host)",
     "gpu02:77:501 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 192.168.122.1<43215> failed : No "
     "route to host",
     "ping failed : No route to host to nowhere"},
    {"NET-NO-ROUTE", Role::kRoot, "failed : Network is unreachable", R"([Cc]onnect to (?P<address>\S+) failed : Network is unreachable)",
     "gpu02:77:501 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.9.0.4<43215> failed : Network "
     "is unreachable",
     "upload failed : Network is unreachable"},
    {"NET-NO-ROUTE", Role::kRoot, "- No route to host)",
     R"(connect to (\[?(?P<address>[^\]\s]+)\]?:\d+ )?.*\(errno: 113 - No route to host\))",
     "[W socket.cpp:663] [c10d] The client socket has failed to connect to [gpu01]:29500 (errno: 113 - No route to "
     "host).",
     "(errno: 111 - Connection refused)"},
    {"NET-NO-ROUTE", Role::kRoot, "- Network is unreachable)", R"(failed to connect to .*\(errno: 101 - Network is unreachable\))",
     "[W socket.cpp:663] [c10d] The client socket has failed to connect to [10.9.0.1]:29500 (errno: 101 - Network is "
     "unreachable).",
     "(errno: 101 - Network is unreachable) is error 101"},
    {"NET-PORT-DROPPED", Role::kRoot, "failed : Software caused connection abort",
     R"([Cc]onnect to (?P<address>\S+) failed : Software caused connection abort)",
     "gpu02:77:501 [0] misc/socket.cc:456 NCCL WARN socketStartConnect: Connect to 10.0.0.1<48213> failed : Software "
     "caused connection abort",
     "ssh failed : Software caused connection abort"},
    {"NET-PORT-DROPPED", Role::kRoot, "failed : Connection timed out", R"([Cc]onnect to (?P<address>\S+) failed : Connection timed out)",
     "gpu02:77:501 [0] misc/socket.cc:456 NCCL WARN socketStartConnect: Connect to 10.0.0.1<48213> failed : "
     "Connection timed out",
     "git fetch failed : Connection timed out"},
    {"NET-PORT-DROPPED", Role::kRoot, "returned Connection timed out, retrying",
     R"(connect to (?P<address>\S+) returned Connection timed out, retrying)",
     "gpu02:77:501 [0] NCCL INFO socketPollConnect: connect to 10.0.0.1<48213> returned Connection timed out, "
     "retrying (3/34) after sleep for 300 msec",
     "curl returned Connection timed out, retrying in 5 s"},
    {"NET-PORT-DROPPED", Role::kRoot, "exceeded error retry count",
     R"(connect to (?P<address>\S+) .*exceeded error retry count|exceeded error retry count after \d+ attempts)",
     "gpu02:77:501 [0] misc/socket.cc:530 NCCL WARN socketPollConnect: connect to 10.0.0.1<48213> returned Connection "
     "timed out, exceeded error retry count after 35 attempts",
     "download exceeded error retry count"},
    {"NET-CONNECT-REFUSED", Role::kRoot, "failed : Connection refused", R"([Cc]onnect to (?P<address>\S+) failed : Connection refused)",
     "gpu02:77:501 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 172.17.0.1<39441> failed : "
     "Connection refused",
     "redis failed : Connection refused by peer"},
    {"NET-CONNECT-REFUSED", Role::kRoot, "returned Connection refused, retrying",
     R"(connect to (?P<address>\S+) returned Connection refused, retrying \((1\d|2\d|3\d)/)",
     "gpu02:77:501 [0] NCCL INFO socketPollConnect: connect to 10.0.0.1<48213> returned Connection refused, retrying "
     "(20/34) after sleep for 2000 msec",
     "gpu02:77:501 [0] NCCL INFO socketPollConnect: connect to 10.0.0.1<48213> returned Connection refused, retrying "
     "(1/34) after sleep for 100 msec"},
    {"NET-PORT-DROPPED", Role::kSymptom, "(Operation now in progress)", R"(misc/socket\.cc:\d+ -> 2 \(Operation now in progress\))",
     "g105:26921:27058 [0] NCCL INFO misc/socket.cc:505 -> 2 (Operation now in progress)", "connect: 115 (Operation now in progress)"},
    {"NET-TRUNCATED", Role::kRoot, "message truncated : receiving",
     R"(NET/Socket : peer (?P<address>\S+) message truncated : receiving \d+ bytes instead of \d+)",
     "gpu02:77:501 [0] transport/net_socket.cc:540 NCCL WARN NET/Socket : peer 10.0.0.1<52012> message truncated : "
     "receiving 1048576 bytes instead of 65536. If you believe your socket network is in a healthy state, there may "
     "be a mismatch in collective sizes or environment settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
     "message truncated : receiving failed"},
    {"NET-TRUNCATED", Role::kRoot, "Message truncated : received", R"(NCCL WARN .*Message truncated : received \d+ bytes instead of \d+)",
     "gpu02:77:501 [0] bootstrap.cc:98 NCCL WARN Bootstrap : Message truncated : received 1024 bytes instead of 256",
     "Message truncated : received mail is too long"},
    {"NET-TRUNCATED", Role::kSymptom, "wrong type ", R"(socketFinalizeAccept.*wrong type \S+ != )",
     "gpu01:77:90 [0] misc/socket.cc:621 NCCL WARN socketFinalizeAccept from 10.0.0.9<40112>: wrong type 3 != 4",
     "TypeError: wrong type given"},
    {"NET-TRUNCATED", Role::kSymptom, "wrong magic", "socketFinalizeAccept.*wrong magic",
     "gpu01:77:90 [0] misc/socket.cc:618 NCCL WARN socketFinalizeAccept: wrong magic 47455420 != ca6e87e6",
     "file has the wrong magic number"},
    {"NET-FLAPS", Role::kRoot, "Link is Down", R"((?:^|\] |kernel: |\S+ )\S*\s?(?P<interface>\S+): (NIC )?Link is Down)",
     "mlx5_core 0000:4b:00.0 ens5f0: Link is Down", "if the Link is Down, replace the cable"},
    {"NET-FLAPS", Role::kRoot, "Lost carrier", R"(systemd-networkd\[\d+\]: (?P<interface>\S+): Lost carrier)",
     "systemd-networkd[812]: ens5f0: Lost carrier", "Lost carrier pigeons"},
    {"NET-FLAPS", Role::kRoot, "NETDEV WATCHDOG:", R"(NETDEV WATCHDOG: (?P<interface>\S+) .*transmit queue \d+ timed out)",
     "NETDEV WATCHDOG: ens5f0 (mlx5_core): transmit queue 3 timed out", "NETDEV WATCHDOG: enabled"},
    {"TIME-SKEW", Role::kRoot, "certificate is not yet valid", "certificate (verify failed: certificate )?is not yet valid",
     "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not "
     "yet valid (_ssl.c:1129)",
     "certificate verify failed: self signed certificate"},
    {"TIME-SKEW", Role::kRoot, "clocks are *not* synchronized", R"(RAS.*clocks are \*not\* synchronized)",
     "gpu01:77:90 [0] NCCL INFO RAS negative travel times detected; clocks are *not* synchronized",
     "clocks are *not* synchronized on purpose"},
};

}  // namespace

std::span<const Signature> network_signatures() { return kNetworkSignatures; }

}  // namespace diagnosis
