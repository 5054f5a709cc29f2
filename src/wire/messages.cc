#include "wire/messages.h"

#include "wire/check_messages.h"
#include "wire/walk.h"

namespace phalanx::wire {
PHALANX_FIELDS(Address, interface, address);
PHALANX_MESSAGE(Hello, build, hostname, user, pid, cpus, gpus, addresses, ssh_server, ssh_client, now_ns, wall_ns, fingerprint);
PHALANX_MESSAGE(Prepared, outcome, program);
PHALANX_MESSAGE(StoreOpened, outcome, port, holder);
PHALANX_MESSAGE(Reached, outcome, interface);
PHALANX_MESSAGE(Started, outcome, rank, pid);
PHALANX_MESSAGE(Output, rank, stream, kind, at_ns, data);
PHALANX_MESSAGE(Progress, rank, at_ns, line);
PHALANX_FIELDS(ExitSign, kind, text);
PHALANX_MESSAGE(Exited, rank, status, at_ns, stopped_by_us, error_file, last_words, signs);
PHALANX_MESSAGE(Connected, rank);
PHALANX_MESSAGE(Pong, nonce, now_ns);
PHALANX_MESSAGE(Finished, killed, left);
PHALANX_MESSAGE(Trouble, text);
PHALANX_MESSAGE(Prepare, run_id, key, lease_ms, job, boot_id);
PHALANX_MESSAGE(OpenStore, address, port, serve);
PHALANX_MESSAGE(Reach, address, port, timeout_ms);
PHALANX_FIELDS(RankSpec, rank, local_rank, set, cpus);
PHALANX_MESSAGE(Start, store_address, store_port, defaults, ranks);
PHALANX_MESSAGE(Signal, signal);
PHALANX_MESSAGE(Ping, nonce, sent_ns);
PHALANX_MESSAGE(Finish);
PHALANX_MESSAGE(Probed, outcome, json);
PHALANX_FIELDS(ListenedPlace, outcome, port);
PHALANX_MESSAGE(Listening, places);
PHALANX_FIELDS(DialedLink, to, master_port, outcome, error_number, connect_ns, round_trip_ns, bytes_per_second, segments, retransmits,
               local_address);
PHALANX_MESSAGE(Dialed, round, links);
PHALANX_FIELDS(ProbePeer, name, addresses);
PHALANX_MESSAGE(Probe, job, peers, ports, names, paths, deadline_ms, firewall);
PHALANX_FIELDS(Place, address, port);
PHALANX_MESSAGE(Listen, key, places);
PHALANX_FIELDS(DialTarget, to, address, port, master_port);
PHALANX_MESSAGE(Dial, round, key, echoes, payload_bytes, burst_ms, timeout_ms, targets);

}  // namespace phalanx::wire
