#include "wire/messages.h"

#include "wire/check_messages.h"
#include "wire/walk.h"

namespace phalanx::wire {
template <typename W>
void fields(W& w, Address& m) {
  w(m.interface);
  w(m.address);
}
template <typename W>
void fields(W& w, Hello& m) {
  w(m.build);
  w(m.hostname);
  w(m.user);
  w(m.pid);
  w(m.cpus);
  w(m.gpus);
  w.each(m.addresses, 8);
  w(m.ssh_server);
  w(m.ssh_client);
  w(m.now_ns);
  w(m.wall_ns);
  w(m.fingerprint);
}
template <typename W>
void fields(W& w, Prepared& m) {
  fields(w, m.outcome);
  w(m.program);
}
template <typename W>
void fields(W& w, StoreOpened& m) {
  fields(w, m.outcome);
  w(m.port);
  w(m.holder);
}
template <typename W>
void fields(W& w, Reached& m) {
  fields(w, m.outcome);
  w(m.interface);
}
template <typename W>
void fields(W& w, Started& m) {
  fields(w, m.outcome);
  w(m.rank);
  w(m.pid);
}
template <typename W>
void fields(W& w, Output& m) {
  w(m.rank);
  one_of(w, m.stream, Stream::kStdout, Stream::kStderr);
  one_of(w, m.kind, OutputKind::kLines, OutputKind::kProgress);
  w(m.at_ns);
  w(m.data);
}
template <typename W>
void fields(W& w, Progress& m) {
  w(m.rank);
  w(m.at_ns);
  w(m.line);
}
template <typename W>
void fields(W& w, ExitSign& m) {
  one_of(w, m.kind, ExitSign::Kind::kCgroupKill, ExitSign::Kind::kOther);
  w(m.text);
}
template <typename W>
void fields(W& w, Exited& m) {
  w(m.rank);
  w(m.status);
  w(m.at_ns);
  w(m.stopped_by_us);
  w(m.error_file);
  w(m.last_words);
  w.each(m.signs, 5);
}
template <typename W>
void fields(W& w, Connected& m) {
  w(m.rank);
}
template <typename W>
void fields(W& w, Pong& m) {
  w(m.nonce);
  w(m.now_ns);
}
template <typename W>
void fields(W& w, Finished& m) {
  w(m.killed);
  w(m.left);
}
template <typename W>
void fields(W& w, Trouble& m) {
  w(m.text);
}
template <typename W>
void fields(W& w, Prepare& m) {
  w(m.run_id);
  w(m.key);
  w(m.lease_ms);
  fields(w, m.job);
  w(m.boot_id);
}
template <typename W>
void fields(W& w, OpenStore& m) {
  w(m.address);
  w(m.port);
  w(m.serve);
}
template <typename W>
void fields(W& w, Reach& m) {
  w(m.address);
  w(m.port);
  w(m.timeout_ms);
}
template <typename W>
void fields(W& w, RankSpec& m) {
  w(m.rank);
  w(m.local_rank);
  w.each(m.set, 8);
  w(m.cpus);
}
template <typename W>
void fields(W& w, Start& m) {
  w(m.store_address);
  w(m.store_port);
  w.each(m.defaults, 8);
  w.each(m.ranks, 16);
}
template <typename W>
void fields(W& w, Signal& m) {
  w(m.signal);
}
template <typename W>
void fields(W& w, Ping& m) {
  w(m.nonce);
  w(m.sent_ns);
}
template <typename W>
void fields(W&, Finish&) {}
template <typename W>
void fields(W& w, Probed& m) {
  fields(w, m.outcome);
  w(m.json);
}
template <typename W>
void fields(W& w, ListenedPlace& m) {
  fields(w, m.outcome);
  w(m.port);
}
template <typename W>
void fields(W& w, Listening& m) {
  w.each(m.places, 22);
}
template <typename W>
void fields(W& w, DialedLink& m) {
  w(m.to);
  w(m.master_port);
  one_of(w, m.outcome, LinkOutcome::kNone, LinkOutcome::kError);
  w(m.error_number);
  w(m.connect_ns);
  w(m.round_trip_ns);
  w(m.bytes_per_second);
  w(m.segments);
  w(m.retransmits);
  w(m.local_address);
}
template <typename W>
void fields(W& w, Dialed& m) {
  w(m.round);
  w.each(m.links, 54);
}
template <typename W>
void fields(W& w, ProbePeer& m) {
  w(m.name);
  w(m.addresses);
}
template <typename W>
void fields(W& w, Probe& m) {
  fields(w, m.job);
  w.each(m.peers, 8);
  w(m.ports);
  w(m.names);
  w(m.paths);
  w(m.deadline_ms);
  w(m.firewall);
}
template <typename W>
void fields(W& w, Place& m) {
  w(m.address);
  w(m.port);
}
template <typename W>
void fields(W& w, Listen& m) {
  w(m.key);
  w.each(m.places, 8);
}
template <typename W>
void fields(W& w, DialTarget& m) {
  w(m.to);
  w(m.address);
  w(m.port);
  w(m.master_port);
}
template <typename W>
void fields(W& w, Dial& m) {
  w(m.round);
  w(m.key);
  w(m.echoes);
  w(m.payload_bytes);
  w(m.burst_ms);
  w(m.timeout_ms);
  w.each(m.targets, 13);
}

PHALANX_MESSAGE(Hello);
PHALANX_MESSAGE(Prepared);
PHALANX_MESSAGE(StoreOpened);
PHALANX_MESSAGE(Reached);
PHALANX_MESSAGE(Started);
PHALANX_MESSAGE(Output);
PHALANX_MESSAGE(Progress);
PHALANX_MESSAGE(Exited);
PHALANX_MESSAGE(Connected);
PHALANX_MESSAGE(Pong);
PHALANX_MESSAGE(Finished);
PHALANX_MESSAGE(Trouble);
PHALANX_MESSAGE(Prepare);
PHALANX_MESSAGE(OpenStore);
PHALANX_MESSAGE(Reach);
PHALANX_MESSAGE(Start);
PHALANX_MESSAGE(Signal);
PHALANX_MESSAGE(Ping);
PHALANX_MESSAGE(Finish);
PHALANX_MESSAGE(Probed);
PHALANX_MESSAGE(Listening);
PHALANX_MESSAGE(Dialed);
PHALANX_MESSAGE(Probe);
PHALANX_MESSAGE(Listen);
PHALANX_MESSAGE(Dial);

}  // namespace phalanx::wire
