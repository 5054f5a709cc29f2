// What follows from a failure elsewhere.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kCascadeSignatures[] = {
    {"LOG-PEER-GONE", Role::kCascade, "Connection closed by remote peer",
     R"((NCCL WARN .*|socketProgress: )Connection closed by remote peer (?P<address>\S+))",
     "gpu02:77:501 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer "
     "gpu01.cluster<48213>",
     "Connection closed by remote peers often"},
    {"LOG-PEER-GONE", Role::kCascade, "socketProgressOpt: Call to ",
     R"(socketProgressOpt: Call to (recv|send) (from|to) (?P<address>\S+) failed : (Connection reset by peer|Broken )"
     "pipe|Connection timed out)",
     "gpu02:77:501 [0] misc/socket.cc:50 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.1<48213> failed : "
     "Connection reset by peer",
     "socketProgressOpt: Call to arms"},
    {"LOG-PEER-GONE", Role::kCascade, "Call to recv from",
     R"(Call to recv from (?P<address>\S+) failed : (Connection reset by peer|Broken pipe))",
     "gpu02:77:501 [0] misc/socket.cc:36 NCCL WARN Net : Call to recv from 10.0.0.1<48213> failed : Connection reset "
     "by peer",
     "Call to recv from the dentist"},
    {"LOG-PEER-GONE", Role::kCascade, "Call to send to",
     R"(Call to send to (?P<address>\S+) failed : (Connection reset by peer|Broken pipe))",
     "gpu02:77:501 [0] misc/socket.cc:36 NCCL WARN Net : Call to send to 10.0.0.1<48213> failed : Broken pipe", "Call to send to all"},
    {"LOG-PEER-GONE", Role::kCascade, "ncclRemoteError",
     "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely",
     "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "case ncclRemoteError:"},
    {"LOG-PEER-GONE", Role::kCascade, "remote process exited or there was a network",
     "(NCCL error|DistBackendError|RuntimeError).*remote process exited or there was a network error",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, "
     "remote process exited or there was a network error, NCCL version 2.20.5",
     "6 remote process exited or there was a network error"},
    {"LOG-PEER-GONE", Role::kCascade, "Connection closed by peer [", R"(Connection closed by peer \[(?P<address>[^\]]+)\]:\d+)",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:51234",
     "Connection closed by peer [see above]"},
    {"LOG-PEER-GONE", Role::kCascade, "Read error [",
     R"(gloo.*Read error \[(?P<address>[^\]]+)\]:\d+: (Connection reset by peer|Connection timed out))",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:575] Read error [10.0.0.1]:51234: Connection "
     "reset by peer",
     "Read error [1]"},
    {"LOG-PEER-GONE", Role::kCascade, "writev [", R"(gloo.*writev \[(?P<address>[^\]]+)\]:\d+: (Connection reset by peer|Broken pipe))",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] writev [10.0.0.1]:51234: Broken pipe", "writev [2]"},
    {"LOG-PEER-GONE", Role::kCascade, "Application timeout caused pair closure", "Application timeout caused pair closure",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Application timeout caused pair "
     "closure",
     "an Application timeout caused"},
    {"LOG-PEER-GONE", Role::kCascade, "Connection reset by peer",
     "(RuntimeError|DistNetworkError|DistBackendError|ConnectionResetError|SocketException|got "
     R"(error|DistStoreError)[:\s].*Connection reset by peer)",
     "torch.distributed.DistNetworkError: Connection reset by peer", "curl: Connection reset by peer"},
    {"LOG-PEER-GONE", Role::kCascade, "Broken pipe", "(RuntimeError|DistNetworkError|BrokenPipeError|c10d).*Broken pipe",
     "RuntimeError: Broken pipe", "grep: write error: Broken pipe"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "NCCL communicator was aborted", "NCCL communicator was aborted",
     "RuntimeError: NCCL communicator was aborted on rank 0.", "a communicator was aborted"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "we are taking the entire process down",
     "To avoid data inconsistency, we are taking the entire process down",
     "[rank4]:[E1016 03:31:38.929246900 ProcessGroupNCCL.cpp:627] [Rank 4] To avoid data inconsistency, we are taking "
     "the entire process down.",
     "so we are taking the entire process down"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "Some NCCL operations have failed or timed out", "Some NCCL operations have failed or timed out",
     "[rank4]:[E1016 03:31:38.929241154 ProcessGroupNCCL.cpp:621] [Rank 4] Some NCCL operations have failed or timed "
     "out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
     "corrupted/incomplete data.",
     "NCCL operations have failed or timed out"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "watchdog thread terminated with exception",
     "(NCCL|Process group) watchdog thread terminated with exception",
     "[rank4]:[E1016 03:31:38.930 ProcessGroupNCCL.cpp:1515] [PG 3 Rank 4] Process group watchdog thread terminated "
     "with exception: [Rank 4] aborted",
     "the thread terminated with exception"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "instance of 'c10::",
     "terminate called after throwing an instance of '(c10::DistBackendError|c10::Error|std::runtime_error|gloo::IoExc"
     "eption)'",
     "terminate called after throwing an instance of 'c10::DistBackendError'", "an instance of 'c10::Tensor'"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "exitcode: -6)", R"(failed \(exitcode: (?P<exit>-6)\) local_rank: (?P<local>\d+))",
     "failed (exitcode: -6) local_rank: 0 (pid: 18231) of binary: /opt/env/bin/python", "failed (exitcode: -6)"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "exitcode  : -6", R"(exitcode\s+: (?P<exit>-6) \(pid: (?P<pid>\d+)\))",
     "  exitcode  : -6 (pid: 18231)", "  exitcode  : -6"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "return code = -6", "exits with return code = (?P<exit>-6)", "exits with return code = -6",
     "return code = -6"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "Observed flight recorder dump signal",
     "Observed flight recorder dump signal from another rank via TCPStore",
     "[rank2]:[E1120 08:47:12.345 ProcessGroupNCCL.cpp:1413] [PG ID 0 PG GUID 0(default_pg) Rank 2] Observed flight "
     "recorder dump signal from another rank via TCPStore.",
     "Observed flight recorder"},
    {"LOG-NCCL-ABORTED", Role::kCascade, "instance of 'gloo::EnforceNotMet'",
     "terminate called after throwing an instance of 'gloo::(EnforceNotMet|IoException)'",
     "terminate called after throwing an instance of 'gloo::EnforceNotMet'", "an instance of 'gloo::EnforceNotMet' is thrown"},
    {"LOG-STORE-GONE", Role::kCascade, "Did the remote server shutdown or crash",
     R"(Connection was likely closed\. Did the remote server shutdown or crash\?)",
     "[W1120 08:47:12.345 TCPStore.cpp:106] [c10d] recvValue failed on SocketImpl(fd=82, addr=[gpu02]:39022, "
     "remote=[gpu01]:29500): Connection was likely closed. Did the remote server shutdown or crash?",
     "Did the remote server shutdown or crash"},
    {"LOG-STORE-GONE", Role::kCascade, R"(Failed to check the "should dump" flag)", R"(Failed to check the "should dump" flag on TCPStore)",
     R"([rank2]:[W1120 08:47:12.345 ProcessGroupNCCL.cpp:1250] [PG ID 0 PG GUID 0 Rank 2] Failed to check the "should )"
     R"(dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe)",
     R"(the "should dump" flag)"},
    {"LOG-STORE-GONE", Role::kCascade, "failed to recv, got 0 bytes", "failed to recv, got 0 bytes",
     "torch.distributed.DistNetworkError: failed to recv, got 0 bytes", "got 0 bytes"},
    {"LOG-STORE-GONE", Role::kCascade, "RendezvousClosedError", R"(^(\S+\.)?RendezvousClosedError)",
     "torch.distributed.elastic.rendezvous.api.RendezvousClosedError", "except RendezvousClosedError:"},
    {"LOG-TERMINATED", Role::kCascade, "closing signal SIGTERM",
     R"(Sending process (?P<pid>\d+) closing signal (SIGTERM|SIGINT|SIGHUP|SIGKILL))",
     "W1120 08:47:12.345 torch/distributed/elastic/multiprocessing/api.py:858] Sending process 18232 closing signal "
     "SIGTERM",
     "the closing signal SIGTERM"},
    {"LOG-TERMINATED", Role::kCascade, "exitcode: -15)", R"(failed \(exitcode: (?P<exit>-15)\) local_rank: (?P<local>\d+))",
     "failed (exitcode: -15) local_rank: 0 (pid: 18231) of binary: /opt/env/bin/python", "failed (exitcode: -15)"},
    {"LOG-TERMINATED", Role::kCascade, "exitcode  : -15", R"(exitcode\s+: (?P<exit>-15) \(pid: (?P<pid>\d+)\))",
     "  exitcode  : -15 (pid: 18231)", "  exitcode  : -15"},
    {"LOG-TERMINATED", Role::kCascade, "Killing subprocess", R"(\[launch\.py:\d+:sigkill_handler\] Killing subprocess (?P<pid>\d+))",
     "[2024-03-05 10:20:31,884] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 18231", "Killing subprocesses is rude"},
    {"LOG-TERMINATED", Role::kCascade, "Terminating subprocess", R"((Terminating|Killing) subprocess (?P<pid>\d+))",
     "[2024-03-05 10:20:31,884] [INFO] [launch.py:316:sigkill_handler] Terminating subprocess 18231", "Terminating subprocess"},
    {"LOG-TERMINATED", Role::kCascade, ": Terminated", R"(^srun: error: (?P<host>\S+): tasks? (?P<rank>\d+)[-,\d]*: Terminated)",
     "srun: error: gpu03: task 11: Terminated", "bob: Terminated"},
    {"LOG-TERMINATED", Role::kCascade, "Terminating StepId", R"(srun: (error: )?(Job step aborted|Terminating StepId=\S+))",
     "srun: Terminating StepId=81234.0", "Terminating StepId"},
    {"LOG-TERMINATED", Role::kCascade, "Job step aborted", R"(srun: Job step aborted: Waiting up to \d+ seconds)",
     "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", "the Job step aborted"},
    {"LOG-LAUNCHER-SUMMARY", Role::kCascade, "ChildFailedError", R"(^(\S+\.)?ChildFailedError:)",
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "except ChildFailedError:"},
    {"LOG-LAUNCHER-SUMMARY", Role::kCascade,
     "CalledProcessError: ", R"(^subprocess\.CalledProcessError: Command .*(non-zero exit status|died with))",
     "subprocess.CalledProcessError: Command '['/opt/env/bin/python', 'train.py']' returned non-zero exit status 1.",
     "except CalledProcessError: x"},
    {"LOG-LAUNCHER-SUMMARY", Role::kCascade, "Exception:", R"(^Exception:\s*$)", "Exception:", "Exception: Current loss scale"},
    {"LOG-LAUNCHER-SUMMARY", Role::kCascade, "ProcessRaisedException", R"(^(\S+\.)?ProcessRaisedException)",
     "torch.multiprocessing.spawn.ProcessRaisedException:", "except ProcessRaisedException"},
    {"LOG-LAUNCHER-SUMMARY", Role::kCascade, "Signal ", R"(traceback\s*: Signal \d+ \(SIG\w+\) received by PID)",
     "  traceback : Signal 9 (SIGKILL) received by PID 18231", "traceback : To enable traceback see: https://pytorch.org"},
};

}  // namespace

std::span<const Signature> cascade_signatures() { return kCascadeSignatures; }

}  // namespace diagnosis
