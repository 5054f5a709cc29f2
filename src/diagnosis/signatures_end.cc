// How ranks end: exit codes, signals, exceptions nobody caught. Also the events.jsonl of our own runs.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kEndSignatures[] = {
    {"RUN-KILLED", Role::kSymptom, R"("signal":"SIGKILL"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGKILL"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGKILL"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGKILL","stopped_)"
     R"(by_us":"SIGTERM"})"},
    {"RUN-SEGFAULT", Role::kSymptom, R"("signal":"SIGSEGV"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGSEGV"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGSEGV"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGSEGV","stopped_)"
     R"(by_us":"SIGTERM"})"},
    {"RUN-BUS-ERROR", Role::kSymptom, R"("signal":"SIGBUS"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGBUS"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGBUS"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGBUS","stopped_b)"
     R"(y_us":"SIGTERM"})"},
    {"RUN-ABORTED", Role::kSymptom, R"("signal":"SIGABRT"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGABRT"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGABRT"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGABRT","stopped_)"
     R"(by_us":"SIGTERM"})"},
    {"RUN-ILLEGAL-INSTRUCTION", Role::kSymptom, R"("signal":"SIGILL"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGILL"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGILL"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGILL","stopped_b)"
     R"(y_us":"SIGTERM"})"},
    {"RUN-TERMINATED", Role::kSymptom, R"("signal":"SIGTERM"})",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","signal":"SIGTERM"\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","signal":"SIGTERM"})",
     R"({"v":1,"t":"2026-11-21T19:21:03.685Z","event":"rank_exited","rank":1,"host":"gpu02","signal":"SIGTERM","stopped_)"
     R"(by_us":"SIGTERM"})"},
    {"RUN-EXIT-CODE", Role::kSymptom, R"("event":"rank_exited")",
     R"x("event":"rank_exited","rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)","code":[1-9]\d*\})x",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","code":3})",
     R"({"v":1,"t":"2026-11-21T19:21:03.624Z","event":"rank_exited","rank":2,"host":"gpu02","code":0})"},
    {"RUN-LEFT-EARLY", Role::kRoot, R"("cause":"RUN-LEFT-EARLY")",
     R"x("event":"end",.*"rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)".*"cause":"RUN-LEFT-EARLY")x",
     R"({"v":1,"t":"2026-11-21T19:21:03.748Z","event":"end","verdict":"rank-failed","exit_code":137,"rank":2,"host":"gpu)"
     R"(02","local_rank":2,"signal":"SIGKILL","cause":"RUN-LEFT-EARLY"})",
     R"({"event":"note","cause":"RUN-LEFT-EARLY"})"},
    {"HOST-LOST", Role::kRoot, R"("cause":"HOST-LOST")",
     R"x("event":"end",.*"rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)".*"cause":"HOST-LOST")x",
     R"({"v":1,"t":"2026-11-21T19:21:03.748Z","event":"end","verdict":"rank-failed","exit_code":137,"rank":2,"host":"gpu)"
     R"(02","local_rank":2,"signal":"SIGKILL","cause":"HOST-LOST"})",
     R"({"event":"note","cause":"HOST-LOST"})"},
    {"HOST-AGENT-KILLED", Role::kRoot, R"("cause":"HOST-AGENT-KILLED")",
     R"x("event":"end",.*"rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)".*"cause":"HOST-AGENT-KILLED")x",
     R"({"v":1,"t":"2026-11-21T19:21:03.748Z","event":"end","verdict":"rank-failed","exit_code":137,"rank":2,"host":"gpu)"
     R"(02","local_rank":2,"signal":"SIGKILL","cause":"HOST-AGENT-KILLED"})",
     R"({"event":"note","cause":"HOST-AGENT-KILLED"})"},
    {"RUN-OOM-HOST", Role::kRoot, R"("cause":"RUN-OOM-HOST")",
     R"x("event":"end",.*"rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)".*"cause":"RUN-OOM-HOST")x",
     R"({"v":1,"t":"2026-11-21T19:21:03.748Z","event":"end","verdict":"rank-failed","exit_code":137,"rank":2,"host":"gpu)"
     R"(02","local_rank":2,"signal":"SIGKILL","cause":"RUN-OOM-HOST"})",
     R"({"event":"note","cause":"RUN-OOM-HOST"})"},
    {"RUN-OOM-CGROUP", Role::kRoot, R"("cause":"RUN-OOM-CGROUP")",
     R"x("event":"end",.*"rank":(?P<rank>\d+),"host":"(?P<host>[^"]*)".*"cause":"RUN-OOM-CGROUP")x",
     R"({"v":1,"t":"2026-11-21T19:21:03.748Z","event":"end","verdict":"rank-failed","exit_code":137,"rank":2,"host":"gpu)"
     R"(02","local_rank":2,"signal":"SIGKILL","cause":"RUN-OOM-CGROUP"})",
     R"({"event":"note","cause":"RUN-OOM-CGROUP"})"},
    {"RUN-KILLED", Role::kSymptom, "exitcode: -9)", R"(failed \(exitcode: (?P<exit>-9)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\))",
     "E1120 08:47:12.345 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: -9) local_rank: 0 "
     "(pid: 18231) of binary: /opt/env/bin/python",
     "failed (exitcode: -9)"},
    {"RUN-KILLED", Role::kSymptom, "exitcode  : -9", R"(exitcode\s+: (?P<exit>-9) \(pid: (?P<pid>\d+)\))", "  exitcode  : -9 (pid: 18231)",
     "  exitcode  : -9"},
    {"RUN-KILLED", Role::kSymptom, "exits with return code = -9", "exits with return code = (?P<exit>-9)",
     "[2024-03-05 10:20:31,884] [INFO] [launch.py:321:sigkill_handler] Killing subprocess 18231 exits with return "
     "code = -9",
     "exits with return code = 0, not -9"},
    {"RUN-KILLED", Role::kSymptom, "terminated with signal SIGKILL", R"(process (?P<rank>\d+) terminated with signal SIGKILL)",
     "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL", "it terminated with signal SIGKILL"},
    {"RUN-KILLED", Role::kSymptom, " Killed ", R"(line \d+:\s+(?P<pid>\d+) Killed\s)",
     "run.sh: line 12: 18231 Killed                  python train.py", "he was Killed twice"},
    {"RUN-OOM-CGROUP", Role::kRoot, ": Out Of Memory", R"(^srun: error: (?P<host>\S+): tasks? (?P<rank>\d+)[-,\d]*: Out Of Memory)",
     "srun: error: gpu05: task 0: Out Of Memory", "bob: Out Of Memory"},
    {"RUN-KILLED", Role::kSymptom, ": Killed", R"(^srun: error: (?P<host>\S+): task (?P<rank>\d+): Killed)",
     "srun: error: gpu03: task 11: Killed", "bob: Killed it on stage"},
    {"RUN-SEGFAULT", Role::kRoot, "Segmentation fault",
     R"((Fatal Python error: Segmentation fault|Segmentation fault.*\(core dumped\)|\*\*\* Process received signal )"
     R"(\*\*\*.*Segmentation|Signal: Segmentation fault \(11\)|task (?P<rank>\d+): Segmentation fault))",
     "Fatal Python error: Segmentation fault", "what is a Segmentation fault"},
    {"RUN-SEGFAULT", Role::kSymptom, "exitcode: -11)",
     R"(failed \(exitcode: (?P<exit>-11)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\))",
     "failed (exitcode: -11) local_rank: 2 (pid: 18233) of binary: /opt/env/bin/python", "failed (exitcode: -11)"},
    {"RUN-SEGFAULT", Role::kSymptom, "exitcode  : -11", R"(exitcode\s+: (?P<exit>-11) \(pid: (?P<pid>\d+)\))",
     "  exitcode  : -11 (pid: 18233)", "  exitcode  : -11"},
    {"RUN-SEGFAULT", Role::kSymptom, "segfault at ", R"((?P<program>\S+)\[(?P<pid>\d+)\]: segfault at [0-9a-f]+ ip)",
     "python[18233]: segfault at 0 ip 00007f2 sp 00007ffe error 4 in libtorch_cuda.so[7f20+100]", "a segfault at night"},
    {"RUN-SEGFAULT", Role::kSymptom, "return code = -11", "exits with return code = (?P<exit>-11)",
     "[launch.py:321:sigkill_handler] exits with return code = -11", "return code = -11"},
    {"RUN-SEGFAULT", Role::kSymptom, "terminated with signal SIGSEGV", R"(process (?P<rank>\d+) terminated with signal SIGSEGV)",
     "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGSEGV", "it terminated with signal SIGSEGV"},
    {"RUN-BUS-ERROR", Role::kSymptom, "exitcode: -7)",
     R"(failed \(exitcode: (?P<exit>-7)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\))",
     "failed (exitcode: -7) local_rank: 2 (pid: 18233) of binary: /opt/env/bin/python", "failed (exitcode: -7)"},
    {"RUN-BUS-ERROR", Role::kSymptom, "exitcode  : -7", R"(exitcode\s+: (?P<exit>-7) \(pid: (?P<pid>\d+)\))",
     "  exitcode  : -7 (pid: 18233)", "  exitcode  : -7"},
    {"RUN-BUS-ERROR", Role::kRoot, "Fatal Python error: Bus error", "Fatal Python error: Bus error", "Fatal Python error: Bus error",
     "Fatal Python error: Aborted"},
    {"RUN-BUS-ERROR", Role::kRoot, "Bus error (core dumped)", R"(Bus error\s+\(core dumped\))",
     "bash: line 12: 18231 Bus error (core dumped) python train.py", "Bus error"},
    {"RUN-ILLEGAL-INSTRUCTION", Role::kSymptom, "exitcode: -4)", R"(failed \(exitcode: (?P<exit>-4)\) local_rank: (?P<local>\d+))",
     "failed (exitcode: -4) local_rank: 2 (pid: 18233) of binary: /opt/env/bin/python", "failed (exitcode: -4)"},
    {"RUN-ILLEGAL-INSTRUCTION", Role::kSymptom, "Illegal instruction",
     R"((Illegal instruction\s+\(core dumped\)|Fatal Python error: Illegal instruction|task (?P<rank>\d+): Illegal )"
     "instruction)",
     "bash: line 12: 18231 Illegal instruction (core dumped) python train.py", "an Illegal instruction"},
    {"RUN-HANGUP", Role::kRoot, "got signal: 1", R"(SignalException: Process (?P<pid>\d+) got signal: 1$)",
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9121 got signal: 1", "Process 9121 got signal: 15"},
    {"RUN-HANGUP", Role::kRoot, "Received 1 death signal", "Received 1 death signal, shutting down workers",
     "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers",
     "Received 15 death signal, shutting down workers"},
    {"RUN-TERMINATED", Role::kSymptom, "death signal, shutting down workers",
     R"(Received (2|15|Signals\.SIG(TERM|INT)) death signal, shutting down workers)",
     "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers",
     "Received 1 death signal, shutting down workers"},
    {"RUN-TERMINATED", Role::kSymptom, "KeyboardInterrupt", "^KeyboardInterrupt$", "KeyboardInterrupt", "except KeyboardInterrupt:"},
    {"RUN-TERMINATED", Role::kSymptom, "got signal: ", R"(SignalException: Process (?P<pid>\d+) got signal: (2|15))",
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9121 got signal: 15", "Process 9121 got signal: 1"},
    {"RUN-EXIT-CODE", Role::kSymptom,
     "failed (exitcode: ", R"(failed \(exitcode: (?P<exit>[1-9]\d*)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\))",
     "failed (exitcode: 1) local_rank: 0 (pid: 18231) of binary: /opt/env/bin/python", "failed (exitcode: 0)"},
    {"RUN-EXIT-CODE", Role::kSymptom, "exitcode  : ", R"(exitcode\s+: (?P<exit>[1-9]\d*) \(pid: (?P<pid>\d+)\))",
     "  exitcode  : 1 (pid: 18231)", "  exitcode  : <N/A>"},
    {"RUN-EXIT-CODE", Role::kSymptom, "exits with return code = ", R"(exits with return code = (?P<exit>[1-9]\d*))",
     "[2024-03-05 10:20:31,884] [ERROR] [launch.py:325:sigkill_handler] ['/opt/env/bin/python', '-u', 'train.py', "
     "'--local_rank=1'] exits with return code = 1",
     "exits with return code = 0"},
    {"RUN-EXIT-CODE", Role::kSymptom, ": Exited with exit code",
     R"(^srun: error: (?P<host>\S+): tasks? (?P<rank>\d+)[-,\d]*: Exited with exit code (?P<exit>[1-9]\d*))",
     "srun: error: gpu03: task 11: Exited with exit code 1", "job: Exited with exit code 0"},
    {"RUN-EXIT-CODE", Role::kSymptom, "mpirun detected that one or more processes exited",
     "mpirun detected that one or more processes exited with non-zero status",
     "mpirun detected that one or more processes exited with non-zero status, thus causing",
     "mpirun detected that one or more processes exited"},
    {"RUN-EXCEPTION", Role::kSymptom, "terminate called after throwing an instance of",
     "terminate called after throwing an instance of '(?P<type>(std::(out_of_range|length_error|invalid_argument|logic"
     "_error|system_error)|thrust::|torch::|at::|pybind11::)[^']*)'",
     "terminate called after throwing an instance of 'std::out_of_range'", "terminate called"},
    {"RUN-ABORTED", Role::kSymptom, "Fatal Python error: Aborted", "Fatal Python error: Aborted", "Fatal Python error: Aborted",
     "Fatal Python error: Segmentation fault"},
    {"LOG-HARMLESS", Role::kContext, "rank      : ", R"(^\s+rank\s+: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\))",
     "  rank      : 3 (local_rank: 3)", "rank      : none"},
    {"LOG-HARMLESS", Role::kContext, "host      : ", R"(^\s+host\s+: (?P<host>\S+))", "  host      : gpu01", "the host      : bob"},
};

}  // namespace

std::span<const Signature> end_signatures() { return kEndSignatures; }

}  // namespace diagnosis
