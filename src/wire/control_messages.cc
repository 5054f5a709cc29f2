#include "wire/control_messages.h"

#include "wire/walk.h"

namespace phalanx::wire {

PHALANX_MESSAGE(Ask, wish, grace_ms, kill);
PHALANX_MESSAGE(RunStatus, json);
PHALANX_MESSAGE(Looked, json);
PHALANX_MESSAGE(Talk, text);
PHALANX_MESSAGE(Dropped, bytes);
PHALANX_MESSAGE(RunEnded, exit_code);
PHALANX_MESSAGE(Sweep, run_id, patience_ms);
PHALANX_FIELDS(SweptProcess, pid, command, gone);
PHALANX_FIELDS(SweptUnseen, pid, text);
PHALANX_MESSAGE(Swept, found, waited_for, unseen);

}  // namespace phalanx::wire
