// torch.distributed, DDP, FSDP, ZeRO; watchdogs; numbers that are none.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kTorchSignatures[] = {
    {"HANG-TIMEOUT", Role::kSymptom, "Watchdog caught collective operation timeout",
     R"((\[Rank (?P<rank>\d+)\] )?Watchdog caught collective operation timeout: WorkNCCL\((SeqNum=(?P<seq>\d+), )"
     R"()?OpType=(?P<op>\w+)(, (TensorShape=\[[^\]]*\]|NumelIn=(?P<in>\d+), NumelOut=(?P<out>\d+)))?, )"
     R"(Timeout\(ms\)=(?P<timeout>\d+)\))",
     "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
     "timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for "
     "600020 milliseconds before timing out.",
     "what does Watchdog caught collective operation timeout mean?"},
    {"HANG-TIMEOUT", Role::kSymptom, "last enqueued NCCL work: ",
     R"(\[(PG (ID \d+ PG GUID )?(?P<group>[^\]]*?) ?)?Rank (?P<rank>\d+)\] .*last enqueued (NCCL )?work: )"
     R"((?P<enqueued>\d+), last completed (NCCL )?work: (?P<completed>\d+))",
     "[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception "
     "(either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed "
     "NCCL work: 807.",
     "last enqueued NCCL work: unknown"},
    {"HANG-WATCHDOG-STUCK", Role::kSymptom, "watchdog got stuck for",
     R"(ProcessGroupNCCL's watchdog got stuck for (?P<seconds>\d+) ?seconds)",
     "[rank3]:[F1120 08:47:12.345 ProcessGroupNCCL.cpp:1366] [PG ID 0 PG GUID 0 Rank 3] [PG ID 0 PG GUID 0 Rank 3] "
     "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued "
     "collectives.",
     "the watchdog got stuck for a while"},
    {"HANG-WATCHDOG-STUCK", Role::kSymptom, "Heartbeat monitor timed out", R"(Rank (?P<rank>\d+)\].*Heartbeat monitor timed out!)",
     "[rank3]:[E1120 08:47:12.345 ProcessGroupNCCL.cpp:1375] [PG ID 0 PG GUID 0(default_pg) Rank 3] Heartbeat monitor "
     "timed out! Process will be terminated after dumping debug info.",
     "Heartbeat monitor timed out"},
    {"HANG-WATCHDOG-STUCK", Role::kSymptom, "Could not acquire GIL within", R"(Could not acquire GIL within \d+ ms on exit)",
     "[rank3]:[E1120 08:47:12.345 ProcessGroupNCCL.cpp:1281] Could not acquire GIL within 300 ms on exit, possible "
     "GIL induced hang",
     "Could not acquire GIL within reason"},
    {"HANG-NEVER-ENTERED", Role::kRoot, "failed to pass monitoredBarrier",
     R"(Ranks? (?P<rank>\d+)[\d, ]* failed to pass monitoredBarrier in \d+ ms)",
     "RuntimeError: Rank 3 failed to pass monitoredBarrier in 30000 ms", "if a rank failed to pass monitoredBarrier"},
    {"HANG-MISMATCH", Role::kRoot, "Detected mismatch between collectives on ranks",
     R"(Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective)",
     "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=12, OpType=ALLREDUCE, TensorShape=[10]), but Rank 0 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=12, OpType=BROADCAST)",
     "Detected mismatch between collectives on ranks"},
    {"HANG-MISMATCH", Role::kRoot, "Error when verifying shape tensors for", "Error when verifying shape tensors for collective",
     "RuntimeError: Error when verifying shape tensors for collective ALLREDUCE on rank 0. This likely indicates that "
     "input shapes into the collective are mismatched across ranks.",
     "Error when verifying shape tensors for fun"},
    {"HANG-MISMATCH", Role::kRoot, "Mismatch between tensor sizes",
     "Cannot apply desired operation due to (shape|size) mismatches|DistributedOperationException: (Mismatch|Cannot)",
     "accelerate.utils.operations.DistributedOperationException: Mismatch between tensor sizes: Cannot apply desired "
     "operation due to shape mismatches. All shapes across devices must be valid.",
     "Mismatch between tensor sizes"},
    {"HANG-MISMATCH", Role::kSymptom, "op.preamble.length", R"(op\.preamble\.length <= op\.nbytes\. \d+ vs \d+)",
     "terminate called after throwing an instance of 'gloo::EnforceNotMet' what(): [enforce fail at "
     "../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 8 vs 4",
     "op.preamble.length = 4"},
    {"HANG-TIMEOUT", Role::kSymptom, "for recv operation to complete",
     R"(Timed out waiting (?P<timeout>\d+)ms for (recv|send) operation to complete)",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for "
     "recv operation to complete",
     "waiting for recv operation to complete"},
    {"HANG-TIMEOUT", Role::kSymptom, "for send operation to complete",
     R"(Timed out waiting (?P<timeout>\d+)ms for (recv|send) operation to complete)",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:136] Timed out waiting 1800000ms for "
     "send operation to complete",
     "waiting for send operation to complete"},
    {"HANG-TIMEOUT", Role::kSymptom, "wait timeout after", R"(wait timeout after \d+ ?ms, keys: )",
     "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cpu//0/rank_1", "a wait timeout after lunch"},
    {"HANG-TIMEOUT", Role::kSymptom, "store->get('", R"(store->get\('\d+'\) got error: (Socket Timeout|wait timeout|Timeout))",
     "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
     "via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout",
     "store->get('0') got error: Connection reset by peer"},
    {"HANG-TIMEOUT", Role::kSymptom, "Socket Timeout", R"(^(\S+\.)?(RuntimeError|DistStoreError|DistNetworkError): Socket Timeout)",
     "RuntimeError: Socket Timeout", "a Socket Timeout of 5 s"},
    {"RUN-DDP-MODEL-DIFFERS", Role::kSymptom, "DDP expects same model across all ranks",
     R"(DDP expects same model across all ranks, but Rank (?P<rank>\d+) has)",
     "RuntimeError: DDP expects same model across all ranks, but Rank 2 has 51 params, while rank 0 has inconsistent "
     "0 params.",
     "DDP expects same model across all ranks"},
    {"RUN-DDP-MODEL-DIFFERS", Role::kRoot, "appears not to match sizes of the same param",
     R"(\[(?P<rank>\d+)\]: params\[\d+\] in this process with sizes .* appears not to match sizes of the same param)",
     "RuntimeError: [3]: params[0] in this process with sizes [10, 10] appears not to match sizes of the same param "
     "in process 0.",
     "it appears not to match sizes of the same param"},
    {"RUN-DDP-UNUSED", Role::kRoot, "Expected to have finished reduction in the prior",
     "Expected to have finished reduction in the prior iteration before starting a new one",
     "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error "
     "indicates that your module has parameters that were not used in producing loss.",
     "Expected to have finished reduction in the prior century"},
    {"RUN-DDP-TWICE", Role::kRoot, "Expected to mark a variable ready only once", "Expected to mark a variable ready only once",
     "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the following "
     "reasons: 1) Use of a module parameter outside the `forward` function.",
     "mark a variable ready only once"},
    {"RUN-DDP-TWICE", Role::kRoot, "has already been reduced", R"(AssertionError: The parameter \d+ has already been reduced)",
     "AssertionError: The parameter 447 has already been reduced. Gradient computed twice for this partition. "
     "Multiple gradient reduction is currently not supported",
     "the price has already been reduced"},
    {"RUN-NOT-INITIALIZED", Role::kRoot, "process group has not been initialized",
     "Default process group has not been initialized, please make sure to call init_process_group",
     "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
     "the process group has not been initialized"},
    {"RUN-NOT-INITIALIZED", Role::kRoot, "Requires distributed package to be available",
     "RuntimeError: Requires distributed package to be available", "RuntimeError: Requires distributed package to be available",
     "this part Requires distributed package to be available"},
    {"RUN-NOT-INITIALIZED", Role::kRoot, "to initialize the default process group twice",
     "trying to initialize the default process group twice", "ValueError: trying to initialize the default process group twice!",
     "to initialize the default process group twice"},
    {"RUN-FSDP-USAGE", Role::kRoot, "Must flatten tensors with",
     "Must flatten tensors with (uniform dtype|the same dtype|uniform `requires_grad`)",
     "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32", "Must flatten tensors with a hammer"},
    {"RUN-FSDP-USAGE", Role::kRoot, "FlatParameter", "(RuntimeError|AssertionError|ValueError): .*FlatParameter",
     "RuntimeError: Cannot writeback when the parameter shape changes Expects torch.Size([65536000]) for "
     "FlatParameter but got torch.Size([32000, 4096])",
     "see FlatParameter docs"},
    {"RUN-ZERO-USAGE", Role::kRoot, "'weight' must be 2-D", "RuntimeError: 'weight' must be 2-D", "RuntimeError: 'weight' must be 2-D",
     "the 'weight' must be 2-D here"},
    {"RUN-ZERO-USAGE", Role::kRoot, "'ds_id'", "AttributeError: .* object has no attribute 'ds_id'|'ds_id'$",
     "AttributeError: 'Parameter' object has no attribute 'ds_id'", "print('ds_id', p)"},
    {"RUN-ZERO-USAGE", Role::kRoot, "inflight params", R"(RuntimeError: still have inflight params|tracing error at step \d+: )",
     "RuntimeError: still have inflight params [<bound method Init._convert_to_deepspeed_param.<locals>.ds_summary of "
     "Parameter containing:",
     "no inflight params"},
    {"RUN-ZERO-USAGE", Role::kRoot, "tracing error at step", R"(RuntimeError: tracing error at step \d+)",
     "RuntimeError: tracing error at step 42: module id: 921, expected 1 params, but got 2", "tracing error at step two"},
    {"RUN-NAN", Role::kRoot, "Current loss scale already at minimum",
     "Exception: Current loss scale already at minimum - cannot decrease scale anymore",
     "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
     "Current loss scale already at minimum"},
    {"RUN-NAN", Role::kRoot, "returned nan values in its", R"(RuntimeError: Function '(?P<function>\w+)' returned nan values in its)",
     "RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output.", "it returned nan values in its tests"},
    {"RUN-NAN", Role::kRoot, "is nan, stopping training", "Loss is nan, stopping training", "Loss is nan, stopping training",
     "my loss is nan, stopping training"},
    {"RUN-NAN", Role::kRoot, "probability tensor contains either", "probability tensor contains either `inf`, `nan` or element < 0",
     "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "a probability tensor contains either"},
    {"RUN-NAN", Role::kRoot, "found NaN in local grad norm", "found NaN in local grad norm",
     "AssertionError: Rank 12: found NaN in local grad norm in backward pass before data-parallel communication "
     "collective.",
     "no found NaN in local"},
    {"LOG-HARMLESS", Role::kBenign, "using GPU ",
     R"(Rank \d+\]\s+using GPU \d+ to perform barrier as devices used by this process are currently unknown)",
     "[rank4]:[W1120 08:47:12.345 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 4]  using GPU 4 to perform "
     "barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank "
     "to GPU mapping is incorrect.",
     "using GPU 4"},
    {"LOG-HARMLESS", Role::kContext, "world size", R"((?i)world size[:=]? ?(?P<nranks>\d+))", "world size: 8, batch 32",
     "the world size of things"},
    {"LOG-HARMLESS", Role::kContext, "world_size", R"(\bworld_size[\'"]?[:=] ?(?P<nranks>\d+))", "world_size=16 micro_batch=4",
     "world_size is unknown"},
};

}  // namespace

std::span<const Signature> torch_signatures() { return kTorchSignatures; }

}  // namespace diagnosis
