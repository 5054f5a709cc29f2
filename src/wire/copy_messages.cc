#include "wire/copy_messages.h"

#include "wire/walk.h"

namespace phalanx::wire {
template <typename W>
void fields(W& w, CopyBegin& m) {
  w(m.name);
  w(m.manifest_bytes);
  w(m.waits);
  w(m.target);
  w(m.mode);
  w(m.remove);
  w(m.among_others);
  w(m.changes_bytes);
  w(m.digest);
}
template <typename W>
void fields(W& w, CopyBytes& m) {
  w(m.data);
}
template <typename W>
void fields(W& w, CopyPacked& m) {
  w(m.size);
  w(m.data);
}
template <typename W>
void fields(W& w, CopyRelease& m) {
  w(m.name);
}
template <typename W>
void fields(W& w, CopyListen& m) {
  w(m.address);
  w(m.key);
}
template <typename W>
void fields(W& w, CopyPassOn& m) {
  w(m.address);
  w(m.port);
  w(m.key);
}
template <typename W>
void fields(W& w, CopyListening& m) {
  fields(w, m.outcome);
  w(m.port);
}
template <typename W>
void fields(W& w, CopyPassing& m) {
  fields(w, m.outcome);
}
template <typename W>
void fields(W& w, CopyTaken& m) {
  w(m.bytes);
  w(m.lost);
}
template <typename W>
void fields(W& w, CopyWanted& m) {
  w(m.entries);
  w(m.partial);
  w(m.from);
  w(m.whole_list);
}
template <typename W>
void fields(W& w, CopyProgress& m) {
  w(m.made);
}
template <typename W>
void fields(W& w, CopyDone& m) {
  fields(w, m.outcome);
  w(m.path);
  w(m.kept);
  w(m.removed);
  w(m.stayed);
}

PHALANX_MESSAGE(CopyBegin);
PHALANX_MESSAGE(CopyBytes);
PHALANX_MESSAGE(CopyPacked);
PHALANX_MESSAGE(CopyRelease);
PHALANX_MESSAGE(CopyListen);
PHALANX_MESSAGE(CopyPassOn);
PHALANX_MESSAGE(CopyWanted);
PHALANX_MESSAGE(CopyProgress);
PHALANX_MESSAGE(CopyListening);
PHALANX_MESSAGE(CopyPassing);
PHALANX_MESSAGE(CopyTaken);
PHALANX_MESSAGE(CopyDone);

}  // namespace phalanx::wire
