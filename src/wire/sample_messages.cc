#include "wire/sample_messages.h"

#include "wire/walk.h"

namespace phalanx::wire {

template <typename W>
void fields(W& w, Sample& m) {
  w(m.id);
  w(m.frames);
  w(m.gpus);
  w(m.deadline_ms);
  w(m.looks);
}
template <typename W>
void fields(W& w, Dig& m) {
  w(m.id);
  w(m.ranks);
  w(m.debugger);
  w(m.deadline_ms);
}
template <typename W>
void fields(W& w, RankPulse& m) {
  w(m.rank);
  w(m.cpu_ms);
  w(m.throttled_ms);
  w(m.major_faults);
  w(m.state);
  w(m.rss_kb);
  w(m.delayed_ms);
}
template <typename W>
void fields(W& w, PeerPulse& m) {
  w(m.address);
  w(m.sent);
  w(m.resent);
  w(m.looks);
  w(m.recovering);
}
template <typename W>
void fields(W& w, Pulse& m) {
  w(m.at_ns);
  w(m.window_ms);
  w.each(m.ranks, 29);
  w.each(m.peers, 20);
  w(m.stolen_permille);
}
template <typename W>
void fields(W& w, Sampled& m) {
  w(m.id);
  fields(w, m.outcome);
  w(m.json);
}
template <typename W>
void fields(W& w, Piece& m) {
  w(m.rank);
  one_of(w, m.kind, PieceKind::kHookStack, PieceKind::kRasReport);
  w(m.bytes);
}
template <typename W>
void fields(W& w, Dug& m) {
  w(m.id);
  w.each(m.pieces, 9);
}

PHALANX_MESSAGE(Sample);
PHALANX_MESSAGE(Dig);
PHALANX_MESSAGE(Pulse);
PHALANX_MESSAGE(Sampled);
PHALANX_MESSAGE(Dug);

}  // namespace phalanx::wire
