#include "wire/copy_messages.h"

#include "wire/walk.h"

namespace phalanx::wire {
PHALANX_MESSAGE(CopyBegin, name, manifest_bytes, waits, target, mode, remove, among_others, changes_bytes, digest, source_mark);
PHALANX_MESSAGE(CopyBytes, data);
PHALANX_MESSAGE(CopyPacked, packing, size, data);
PHALANX_MESSAGE(CopyRelease, name);
PHALANX_MESSAGE(CopyListen, address, key);
PHALANX_MESSAGE(CopyPassOn, address, port, key);
PHALANX_MESSAGE(CopyListening, outcome, port);
PHALANX_MESSAGE(CopyPassing, outcome);
PHALANX_MESSAGE(CopyTaken, bytes, lost);
PHALANX_MESSAGE(CopyWanted, entries, partial, from, whole_list);
PHALANX_MESSAGE(CopyProgress, made);
PHALANX_MESSAGE(CopyDone, outcome, path, kept, removed, stayed, is_source);

}  // namespace phalanx::wire
