#include "store/table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace phalanx::store {
namespace {

using Outcome = Table::Outcome;

// What an entry takes beside its bytes: hash node, allocator, bookkeeping. Estimates, on the high side.
constexpr size_t kSlotCost = 192, kItemCost = 64, kWatchCost = 24;
constexpr size_t kNumberSize = 20;  // "-9223372036854775808"

void answer_u8(Outbox& outbox, ClientId client, uint8_t value) {
  if (std::string* out = outbox.room(client, 1)) put_u8(*out, value);
}
void answer_u64(Outbox& outbox, ClientId client, uint64_t value) {
  if (std::string* out = outbox.room(client, 8)) put_u64(*out, value);
}
void answer_string(Outbox& outbox, ClientId client, std::string_view bytes) {
  if (std::string* out = outbox.room(client, 8 + bytes.size())) put_string(*out, bytes);
}
constexpr auto kStop = static_cast<uint8_t>(WaitAnswer::kStopWaiting);

// Counters are decimal text. As std::stoll, which PyTorch uses: blanks and a sign in front, anything behind.
std::optional<int64_t> parse_counter(std::string_view text) {
  size_t at = text.find_first_not_of(" \t\n\v\f\r");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at);
  if (text.front() == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

int64_t wrapping_add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

}  // namespace

Outcome Table::apply(ClientId client, const Op& op, Outbox& outbox) {
  const auto& parts = op.parts;
  switch (op.code) {
    case OpCode::kValidate:
    case OpCode::kProbe:
    case OpCode::kProof: break;
    case OpCode::kSet: return set(parts[0], parts[1], outbox);
    case OpCode::kCompareSet: return compare_set(client, op, outbox);
    case OpCode::kGet:
    case OpCode::kMultiGet: get(client, parts, outbox); break;
    case OpCode::kAdd: return add(client, parts[0], op.number, outbox);
    case OpCode::kCheck: {
      bool ready = std::all_of(parts.begin(), parts.end(), [&](auto key) { return is_ready(key); });
      answer_u8(outbox, client, static_cast<uint8_t>(ready ? CheckAnswer::kReady : CheckAnswer::kNotReady));
      break;
    }
    case OpCode::kWait: return wait(client, parts, outbox);
    case OpCode::kNumKeys: answer_u64(outbox, client, keys_); break;
    case OpCode::kDeleteKey: delete_key(client, parts[0], outbox); break;
    case OpCode::kAppend: return append(parts[0], parts[1], outbox);
    case OpCode::kMultiSet: return multi_set(parts, outbox);
    case OpCode::kCancelWait:
      stop_waiting(client);
      answer_u8(outbox, client, static_cast<uint8_t>(WaitAnswer::kCanceled));
      break;
    case OpCode::kPing:
      if (std::string* out = outbox.room(client, 4)) put_u32(*out, static_cast<uint32_t>(op.number));
      break;
    case OpCode::kQueuePush: return push(parts[0], parts[1], outbox);
    case OpCode::kQueuePop: pop(client, parts[0], outbox); break;
    case OpCode::kQueueLen: {
      Slot* slot = find(parts[0]);
      answer_u64(outbox, client, slot && slot->queue ? slot->queue->size() : 0);
      break;
    }
    case OpCode::kListKeys: list_keys(client, outbox); break;
    case OpCode::kBarrier: return barrier(client, parts[0], op.number, outbox);
    case OpCode::kWatchKey: return watch(client, parts[0], outbox);
  }
  return Outcome::kDone;
}

Table::Slot* Table::find(std::string_view key) {
  auto it = slots_.find(key);
  return it == slots_.end() ? nullptr : &it->second;
}

bool Table::is_ready(std::string_view key) {
  Slot* slot = find(key);
  return slot && (slot->has_value || slot->queue);
}

// What it takes to give the key this value; `slot` is what find(key) said.
size_t Table::growth(const Slot* slot, std::string_view key, size_t value_size) {
  if (!slot) return kSlotCost + key.size() + value_size;
  return value_size - std::min(value_size, slot->value.size());
}

Table::Slot& Table::slot_for(std::string_view key) {
  if (Slot* slot = find(key)) return *slot;
  return add_slot(key);
}

Table::Slot& Table::add_slot(std::string_view key) {
  auto it = slots_.try_emplace(std::string(key)).first;
  it->second.key = &it->first;
  bytes_ += kSlotCost + key.size();
  return it->second;
}

void Table::drop_if_unused(Slot& slot) {
  if (slot.has_value || slot.queue || slot.first || !slot.watchers.empty()) return;
  bytes_ -= kSlotCost + slot.key->size();
  slots_.erase(slots_.find(*slot.key));
}

void Table::put_value(Slot& slot, std::string_view value) {
  bytes_ += value.size();
  bytes_ -= slot.value.size();
  if (slot.value.capacity() > 2 * value.size() + 64) slot.value = std::string(value);  // give a large one's memory back
  else slot.value.assign(value);
  if (!slot.has_value) ++keys_;
  slot.has_value = true;
}

Outcome Table::set(std::string_view key, std::string_view value, Outbox& outbox) {
  Slot* found = find(key);
  if (!fits(growth(found, key, value.size()))) return Outcome::kFull;
  Slot& slot = found ? *found : add_slot(key);
  if (slot.watchers.empty()) {
    put_value(slot, value);
    wake_all(slot, outbox);
    return Outcome::kDone;
  }
  std::string before = slot.value;
  WatchAnswer what = slot.has_value ? WatchAnswer::kUpdated : WatchAnswer::kCreated;
  put_value(slot, value);
  wake_all(slot, outbox);
  tell_watchers(slot, what, before, value, outbox);
  return Outcome::kDone;
}

// A key that is missing counts as empty. Answers with what the key holds now; as PyTorch does, one that is missing and was not
// expected to be is answered with what was expected.
Outcome Table::compare_set(ClientId client, const Op& op, Outbox& outbox) {
  std::string_view expected = op.parts[1], desired = op.parts[2];
  Slot* slot = find(op.parts[0]);
  bool exists = slot && slot->has_value;
  if (exists ? slot->value != expected : !expected.empty()) {
    answer_string(outbox, client, exists ? std::string_view(slot->value) : expected);
    return Outcome::kDone;
  }
  if (Outcome outcome = set(op.parts[0], desired, outbox); outcome != Outcome::kDone) return outcome;
  answer_string(outbox, client, desired);
  return Outcome::kDone;
}

Outcome Table::add(ClientId client, std::string_view key, int64_t delta, Outbox& outbox) {
  int64_t sum = delta;
  if (Slot* slot = find(key); slot && slot->has_value) {
    std::optional<int64_t> old = parse_counter(slot->value);
    if (!old) return Outcome::kNotANumber;
    sum = wrapping_add(*old, delta);
  }
  if (Outcome outcome = set(key, std::to_string(sum), outbox); outcome != Outcome::kDone) return outcome;
  answer_u64(outbox, client, static_cast<uint64_t>(sum));
  return Outcome::kDone;
}

// Counts the callers; everybody is let go when the last one has come. The key exists from the first call on, but what
// it wakes are those who wait for it, so the count is stored silently.
Outcome Table::barrier(ClientId client, std::string_view key, int64_t world_size, Outbox& outbox) {
  int64_t count = 1;
  if (Slot* slot = find(key); slot && slot->has_value) {
    std::optional<int64_t> old = parse_counter(slot->value);
    if (!old) return Outcome::kNotANumber;
    count = wrapping_add(*old, 1);
  }
  stop_waiting(client);
  if (!fits(kSlotCost + key.size() + kNumberSize + cost_of_wait(1))) return Outcome::kFull;
  Slot& slot = slot_for(key);
  put_value(slot, std::to_string(count));
  if (count < world_size) {
    start_waiting(client, {&slot});
    return Outcome::kDone;
  }
  wake_all(slot, outbox);
  answer_u8(outbox, client, kStop);
  return Outcome::kDone;
}

Outcome Table::wait(ClientId client, const std::vector<std::string_view>& keys, Outbox& outbox) {
  stop_waiting(client);
  std::vector<std::string_view> missing;
  size_t need = 0;
  for (std::string_view key : keys) {
    if (is_ready(key)) continue;
    missing.push_back(key);
    need += kSlotCost + key.size();
  }
  if (missing.empty()) {
    answer_u8(outbox, client, kStop);
    return Outcome::kDone;
  }
  if (!fits(need + cost_of_wait(missing.size()))) return Outcome::kFull;
  std::vector<Slot*> slots;
  slots.reserve(missing.size());
  for (std::string_view key : missing) slots.push_back(&slot_for(key));
  start_waiting(client, slots);
  return Outcome::kDone;
}

Outcome Table::append(std::string_view key, std::string_view value, Outbox& outbox) {
  Slot* slot = find(key);
  if (!slot || !slot->has_value) return set(key, value, outbox);
  if (!fits(value.size())) return Outcome::kFull;
  bytes_ += value.size();
  slot->value.append(value);
  wake_all(*slot, outbox);
  tell_watchers(*slot, WatchAnswer::kAppended, {}, value, outbox);
  return Outcome::kDone;
}

Outcome Table::multi_set(const std::vector<std::string_view>& parts, Outbox& outbox) {
  size_t need = 0;
  for (size_t i = 0; i < parts.size(); i += 2) need += kSlotCost + parts[i].size() + parts[i + 1].size();
  if (!fits(need)) return Outcome::kFull;
  for (size_t i = 0; i < parts.size(); i += 2) (void)set(parts[i], parts[i + 1], outbox);
  return Outcome::kDone;
}

void Table::get(ClientId client, const std::vector<std::string_view>& keys, Outbox& outbox) {
  std::vector<std::string_view> values;
  values.reserve(keys.size());
  size_t size = 8 * keys.size();
  for (std::string_view key : keys) {
    Slot* slot = find(key);
    values.push_back(slot ? std::string_view(slot->value) : std::string_view());
    size += values.back().size();
  }
  std::string* out = outbox.room(client, size);
  if (!out) return;
  for (std::string_view value : values) put_string(*out, value);
}

void Table::delete_key(ClientId client, std::string_view key, Outbox& outbox) {
  Slot* slot = find(key);
  bool existed = slot && slot->has_value;
  if (existed) {
    tell_watchers(*slot, WatchAnswer::kDeleted, slot->value, {}, outbox);
    bytes_ -= slot->value.size();
    slot->value = {};
    slot->has_value = false;
    --keys_;
    drop_if_unused(*slot);
  }
  answer_u64(outbox, client, existed ? 1 : 0);
}

void Table::list_keys(ClientId client, Outbox& outbox) {
  size_t size = 8;
  for (auto& [key, slot] : slots_) {
    if (slot.has_value) size += 8 + key.size();
  }
  std::string* out = outbox.room(client, size);
  if (!out) return;
  put_u64(*out, keys_);
  for (auto& [key, slot] : slots_) {
    if (slot.has_value) put_string(*out, key);
  }
}

Outcome Table::push(std::string_view key, std::string_view value, Outbox& outbox) {
  if (!fits(kSlotCost + key.size() + kItemCost + value.size())) return Outcome::kFull;
  Slot& slot = slot_for(key);
  if (!slot.queue) slot.queue = std::make_unique<std::deque<std::string>>();
  slot.queue->emplace_back(value);
  bytes_ += kItemCost + value.size();
  wake_one(slot, outbox);
  return Outcome::kDone;
}

// Answered with the length before, and if that is not 0 with the oldest item.
void Table::pop(ClientId client, std::string_view key, Outbox& outbox) {
  Slot* slot = find(key);
  if (!slot || !slot->queue) return answer_u64(outbox, client, 0);
  auto& items = *slot->queue;
  std::string* out = outbox.room(client, 16 + items.front().size());
  if (!out) return;
  put_u64(*out, items.size());
  put_string(*out, items.front());
  bytes_ -= kItemCost + items.front().size();
  items.pop_front();
  if (items.empty()) slot->queue.reset();
  drop_if_unused(*slot);
}

Outcome Table::watch(ClientId client, std::string_view key, Outbox& outbox) {
  if (!fits(kSlotCost + key.size() + kWatchCost)) return Outcome::kFull;
  Slot& slot = slot_for(key);
  if (std::find(slot.watchers.begin(), slot.watchers.end(), client) == slot.watchers.end()) {
    slot.watchers.push_back(client);
    watches_[client].push_back(&slot);
    bytes_ += kWatchCost;
  }
  answer_u8(outbox, client, static_cast<uint8_t>(WatchAnswer::kRegistered));
  return Outcome::kDone;
}

void Table::tell_watchers(Slot& slot, WatchAnswer what, std::string_view before, std::string_view after, Outbox& outbox) {
  for (ClientId watcher : slot.watchers) {
    std::string* out = outbox.room(watcher, 1 + 3 * 8 + slot.key->size() + before.size() + after.size());
    if (!out) continue;
    put_u8(*out, static_cast<uint8_t>(what));
    put_string(*out, *slot.key);
    put_string(*out, before);
    put_string(*out, after);
  }
}

void Table::forget(ClientId client) {
  stop_waiting(client);
  auto it = watches_.find(client);
  if (it == watches_.end()) return;
  for (Slot* slot : it->second) {
    std::erase(slot->watchers, client);
    bytes_ -= kWatchCost;
    drop_if_unused(*slot);
  }
  watches_.erase(it);
}

void Table::clear() {
  slots_.clear();
  waits_.clear();
  watches_.clear();
  bytes_ = keys_ = 0;
}

}  // namespace phalanx::store
