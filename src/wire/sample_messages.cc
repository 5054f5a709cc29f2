#include "wire/sample_messages.h"

#include "wire/walk.h"

namespace phalanx::wire {

PHALANX_MESSAGE(Sample, id, frames, gpus, deadline_ms, looks);
PHALANX_MESSAGE(Dig, id, ranks, debugger, deadline_ms);
PHALANX_FIELDS(RankPulse, rank, cpu_ms, throttled_ms, major_faults, state, rss_kb, delayed_ms);
PHALANX_FIELDS(PeerPulse, address, sent, resent, looks, recovering);
PHALANX_MESSAGE(Pulse, at_ns, window_ms, ranks, peers, stolen_permille);
PHALANX_MESSAGE(Sampled, id, outcome, json);
PHALANX_FIELDS(Piece, rank, kind, bytes);
PHALANX_MESSAGE(Dug, id, pieces);

}  // namespace phalanx::wire
