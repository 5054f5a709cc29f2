// The part of Table that keeps clients waiting for keys to appear, and lets them go. A WAIT is a row of nodes, one per missing
// key, each linked into its key's slot: to wake a key's waiters, or to take a client away, touches only their nodes.
#include "store/table.h"

namespace phalanx::store {

size_t Table::cost_of_wait(size_t keys) {
  constexpr size_t kWaitCost = 96;  // hash node, allocator: an estimate on the high side
  return kWaitCost + keys * sizeof(WaitNode);
}

void Table::start_waiting(ClientId client, const std::vector<Slot*>& slots) {
  Wait& wait = waits_.try_emplace(client).first->second;
  wait.client = client;
  wait.pending = slots.size();
  wait.nodes.resize(slots.size());
  bytes_ += cost_of_wait(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = *slots[i];
    WaitNode& node = wait.nodes[i];
    node = {&wait, &slot, nullptr, slot.last};
    (slot.last ? slot.last->next : slot.first) = &node;
    slot.last = &node;
  }
}

void Table::unlink(WaitNode& node) {
  (node.previous ? node.previous->next : node.slot->first) = node.next;
  (node.next ? node.next->previous : node.slot->last) = node.previous;
  node.slot = nullptr;
}

void Table::stop_waiting(ClientId client) {
  auto it = waits_.find(client);
  if (it == waits_.end()) return;
  for (WaitNode& node : it->second.nodes) {
    Slot* slot = node.slot;
    if (!slot) continue;
    unlink(node);
    drop_if_unused(*slot);
  }
  bytes_ -= cost_of_wait(it->second.nodes.size());
  waits_.erase(it);
}

// Takes the node off its slot; true when it was the last its client waited for, which then has been told.
bool Table::appeared(WaitNode& node, Outbox& outbox) {
  Wait& wait = *node.wait;
  unlink(node);
  if (--wait.pending > 0) return false;
  ClientId client = wait.client;
  bytes_ -= cost_of_wait(wait.nodes.size());
  waits_.erase(client);
  if (std::string* out = outbox.room(client, 1)) put_u8(*out, static_cast<uint8_t>(WaitAnswer::kStopWaiting));
  return true;
}

void Table::wake_all(Slot& slot, Outbox& outbox) {
  while (slot.first) appeared(*slot.first, outbox);
}

// A queued item goes to one client: the first in line that waits for nothing else any more.
void Table::wake_one(Slot& slot, Outbox& outbox) {
  while (slot.first) {
    if (appeared(*slot.first, outbox)) return;
  }
}

}  // namespace phalanx::store
