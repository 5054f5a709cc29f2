// How ranks meet: ports, names, stores.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kRendezvousSignatures[] = {
    {"RDZV-PORT-TAKEN", Role::kRoot, "Address already in use",
     R"((EADDRINUSE|errno: 98 - |server socket|Errno 98\]|bind|listen).*Address already in use)",
     "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in "
     "use).",
     "if the Address already in use error is seen, change the port"},
    {"RDZV-PORT-TAKEN", Role::kRoot, "EADDRINUSE", "(EADDRINUSE|code: -98)",
     "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
     "29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
     "errno.h: EADDRINUSAGE"},
    {"RDZV-PORT-TAKEN", Role::kRoot, "has failed to listen on any local network",
     "server socket has failed to listen on any local network address",
     "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed "
     "to bind to [::]:29500",
     "failed to listen on any local network radio"},
    {"RDZV-PORT-TAKEN", Role::kRoot, "already in use", R"((ConnectionError|ValueError|OSError).*[Pp]ort .?\d+.? is already in use)",
     "ConnectionError: Port 29500 is already in use", "the name is already in use"},
    {"RDZV-PORT-TAKEN", Role::kRoot, "but another process is utilizing it",
     R"(Tried to launch distributed communication on port .\d+.?, but another process is utilizing it)",
     "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing "
     "it. Please specify a different port",
     "the phone rings but another process is utilizing it"},
    {"RDZV-MASTER-SILENT", Role::kRoot, "The client socket has timed out after",
     R"(The client socket has timed out after (?P<after>\d+ ?m?s) while trying to connect to \((?P<address>[^)]+)\))",
     "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to "
     "(10.0.0.1, 29500).",
     "The client socket has connected to (10.0.0.1, 29500)"},
    {"RDZV-MASTER-SILENT", Role::kRoot, "The client socket has timed out after",
     R"(client socket has timed out after \d+s while trying to connect)",
     "torch.distributed.DistStoreError: The client socket has timed out after 60s while trying to connect to (gpu01, "
     "29500)",
     "client socket connected after 60s"},
    {"RDZV-MASTER-SILENT", Role::kSymptom, "has failed to connect to",
     R"(\[c10d\] The client socket has failed to connect to \[?(?P<address>[^\]\s]+)\]?:\d+ \(errno: (110|111) - )",
     "[W socket.cpp:663] [c10d] The client socket has failed to connect to [gpu01]:29500 (errno: 110 - Connection "
     "timed out).",
     "[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot "
     "assign requested address)."},
    {"RDZV-MASTER-SILENT", Role::kSymptom, "TCP client failed to connect/validate",
     R"(TCP client failed to connect/validate to host (?P<address>\S+))",
     "[W1120 08:47:12.1 TCPStore.cpp:141] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - "
     "retrying (try=3, timeout=600000ms, delay=25137ms)",
     "TCP client connected to host 10.0.0.1:29500"},
    {"RDZV-RANKS-MISSING", Role::kRoot, "clients joined",
     R"(Timed out after (?P<after>\d+) seconds waiting for clients\. (?P<joined>\d+)/(?P<expected>\d+) clients joined)",
     "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.", "2/2 clients joined."},
    {"RDZV-RANKS-MISSING", Role::kRoot, "waiting for clients.", R"(DistStoreError.*Timed out after \d+ seconds waiting for clients)",
     "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 7/8 clients joined.",
     "waiting for clients. please hold"},
    {"RDZV-TIMEOUT", Role::kSymptom, "RendezvousTimeoutError", R"(^(\S+\.)?RendezvousTimeoutError)",
     "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", "except RendezvousTimeoutError:"},
    {"RDZV-TIMEOUT", Role::kSymptom, "RendezvousConnectionError", "RendezvousConnectionError: The connection to the C10d store has failed",
     "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has "
     "failed. See inner exception for details.",
     "class RendezvousConnectionError(RendezvousError)"},
    {"RDZV-NODE-DROPPED", Role::kRoot, "since they had no heartbeat", "removed from the rendezvous .* since they had no heartbeat",
     "As part of the sync operation the node(s) gpu02_421_0 have been removed from the rendezvous 101 since they had "
     "no heartbeat.",
     "no worry, since they had no heartbeat yet"},
    {"RDZV-NODE-DROPPED", Role::kSymptom, "Detected dead node", "dynamic_rendezvous.*Detected dead node",
     "torch.distributed.elastic.rendezvous.dynamic_rendezvous: Detected dead node gpu02_421_0", "Detected dead node.js"},
    {"RDZV-MASTER-UNKNOWN", Role::kRoot, "network addresses of (",
     R"(The IPv[46](/IPv6)? network addresses of \((?P<address>[^)]+)\) cannot be retrieved \(gai error: -?\d+)",
     "[W socket.cpp:601] [c10d] The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -2 - "
     "Name or service not known).",
     "The IPv4 network addresses of (gpu01, 29500) are known"},
    {"RDZV-MASTER-UNKNOWN", Role::kRoot, "Temporary failure in name resolution",
     "(gaierror|gai error|c10d|TCPStore|MASTER_ADDR).*Temporary failure in name resolution",
     "socket.gaierror: [Errno -3] Temporary failure in name resolution", "pip: Temporary failure in name resolution"},
    {"RDZV-MASTER-UNKNOWN", Role::kRoot, "Name or service not known",
     R"((gaierror: \[Errno -2\]|ssh: Could not resolve hostname \S+): Name or service not known|gaierror: \[Errno -2\] )"
     "Name or service not known",
     "socket.gaierror: [Errno -2] Name or service not known", "ping: foo: Name or service not known"},
    {"RDZV-NAME-LOOPBACK", Role::kRoot, "Gloo connectFullMesh failed", R"(Gloo connectFullMesh failed with .*127\.0\.[01]\.1)",
     "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error, "
     "remote=[127.0.1.1]:60817",
     "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error, "
     "remote=[10.0.0.2]:60817"},
    {"NET-CONNECT-REFUSED", Role::kRoot, "Gloo connectFullMesh failed", "Gloo connectFullMesh failed with",
     "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] connect "
     "[10.0.0.2]:60817: Connection refused",
     "Gloo connectFullMesh succeeded"},
    {"RDZV-NAME-LOOPBACK", Role::kSymptom, "Using the loopback address as fallback",
     R"(Unable to resolve hostname to a \(local\) address\. Using the loopback address as fallback)",
     "[W ProcessGroupGloo.cpp:559] Warning: Unable to resolve hostname to a (local) address. Using the loopback "
     "address as fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function "
     "operator())",
     "Using the loopback address as fallback"},
    {"RDZV-VARIABLE-MISSING", Role::kRoot, "expected, but not set",
     R"((ValueError: Error initializing torch\.distributed using env:// rendezvous: )?environment variable )"
     R"((?P<name>\w+) expected, but not set)",
     "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR "
     "expected, but not set",
     "the flag was expected, but not set"},
    {"RDZV-VARIABLE-MISSING", Role::kRoot, "KeyError: '", "^KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'",
     "KeyError: 'LOCAL_RANK'", "KeyError: 'labels'"},
    {"RDZV-SOMAXCONN", Role::kBenign, "but somaxconn is", R"(Starting store with \d+ workers but somaxconn is)",
     "[W TCPStore.cpp:120] Starting store with 1024 workers but somaxconn is 128. This might cause instability during "
     "bootstrap, consider increasing it.",
     "somaxconn is 4096"},
    {"RDZV-SSH", Role::kRoot, "Permission denied (publickey", R"(Permission denied \(publickey)",
     "gpu02: user@gpu02: Permission denied (publickey,password).", "git: Permission denied (https)"},
    {"RDZV-SSH", Role::kRoot, "Host key verification failed", R"(^(\S+: )?Host key verification failed)",
     "gpu02: Host key verification failed.", "if Host key verification failed, ask"},
    {"RDZV-SSH", Role::kRoot, "was not reachable via ssh", R"(host=(?P<host>\S+) was not reachable via ssh)",
     "RuntimeError: Using hostfile at /job/hostfile but host=gpu02 was not reachable via ssh. If you are running with "
     "a single node please remove /job/hostfile or setup passwordless ssh.",
     "the host was reachable via ssh"},
    {"RDZV-SSH", Role::kRoot, "ssh: connect to host", R"(ssh: connect to host (?P<host>\S+) port \d+: (?P<why>.*))",
     "ssh: connect to host gpu02 port 22: Connection refused", "ssh: connected to host gpu02"},
};

}  // namespace

std::span<const Signature> rendezvous_signatures() { return kRendezvousSignatures; }

}  // namespace diagnosis
