// The keys of the store, and the clients that wait for some or watch them. Pure: it is given one request at a time and
// says what each client is to be sent. Clients are numbers chosen by the caller.
//
// WAIT is answered once every key it names has a value or a queue with something in it; each key counts from the moment
// it appears. A client has one outstanding WAIT (or BARRIER): a new one takes the place of the old.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/protocol.h"

namespace phalanx::store {

using ClientId = uint32_t;

// Where answers go. room() gives the string to which exactly `bytes` bytes for this client are appended next, or null:
// then the client is not to be sent anything any more, and the answer is dropped.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual std::string* room(ClientId client, size_t bytes) = 0;
};

class Table {
 public:
  // What a request came to. On anything but kDone nothing was changed or answered, and the client has to be dropped:
  // the protocol has no way to tell it.
  enum class Outcome { kDone, kFull, kNotANumber };

  // Keys, values, queues, and those who wait and watch, with a fair estimate of their overhead, stay within max_bytes.
  explicit Table(size_t max_bytes) : max_bytes_(max_bytes) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Outcome apply(ClientId client, const Op& op, Outbox& outbox);  // kValidate and kProbe do nothing
  void stop_waiting(ClientId client);                            // silently
  void forget(ClientId client);                                  // it is gone: neither waits nor watches
  void clear();                                                  // as if new

  size_t keys() const { return keys_; }
  size_t bytes() const { return bytes_; }
  size_t waiting() const { return waits_.size(); }

 private:
  struct Slot;
  struct Wait;
  // One key of a WAIT, linked into its slot in order of arrival; unlinked when the key has appeared.
  struct WaitNode {
    Wait* wait;
    Slot* slot;
    WaitNode* next;
    WaitNode* previous;
  };
  struct Wait {
    ClientId client;
    size_t pending;
    std::vector<WaitNode> nodes;
  };
  // Whatever is known about a key: it exists while it has a value, a queue with items, or somebody interested in it.
  struct Slot {
    const std::string* key = nullptr;  // the map's own
    bool has_value = false;
    std::string value;
    WaitNode* first = nullptr;
    WaitNode* last = nullptr;
    std::unique_ptr<std::deque<std::string>> queue;  // null when empty
    std::vector<ClientId> watchers;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Outcome set(std::string_view key, std::string_view value, Outbox& outbox);
  Outcome compare_set(ClientId client, const Op& op, Outbox& outbox);
  Outcome add(ClientId client, std::string_view key, int64_t delta, Outbox& outbox);
  Outcome append(std::string_view key, std::string_view value, Outbox& outbox);
  Outcome wait(ClientId client, const std::vector<std::string_view>& keys, Outbox& outbox);
  Outcome barrier(ClientId client, std::string_view key, int64_t world_size, Outbox& outbox);
  Outcome multi_set(const std::vector<std::string_view>& parts, Outbox& outbox);
  Outcome push(std::string_view key, std::string_view value, Outbox& outbox);
  Outcome watch(ClientId client, std::string_view key, Outbox& outbox);
  void get(ClientId client, const std::vector<std::string_view>& keys, Outbox& outbox);
  void pop(ClientId client, std::string_view key, Outbox& outbox);
  void list_keys(ClientId client, Outbox& outbox);
  void delete_key(ClientId client, std::string_view key, Outbox& outbox);

  Slot* find(std::string_view key);
  bool is_ready(std::string_view key);
  static size_t growth(const Slot* slot, std::string_view key, size_t value_size);
  Slot& slot_for(std::string_view key);
  Slot& add_slot(std::string_view key);
  void drop_if_unused(Slot& slot);
  bool fits(size_t more) const { return more <= max_bytes_ - bytes_; }
  static size_t cost_of_wait(size_t keys);
  void put_value(Slot& slot, std::string_view value);
  void start_waiting(ClientId client, const std::vector<Slot*>& slots);
  void unlink(WaitNode& node);
  void wake_all(Slot& slot, Outbox& outbox);
  void wake_one(Slot& slot, Outbox& outbox);
  bool appeared(WaitNode& node, Outbox& outbox);
  void tell_watchers(Slot& slot, WatchAnswer what, std::string_view before, std::string_view after, Outbox& outbox);

  size_t max_bytes_;
  size_t bytes_ = 0;
  size_t keys_ = 0;  // slots with a value
  std::unordered_map<std::string, Slot, Hash, std::equal_to<>> slots_;
  std::unordered_map<ClientId, Wait> waits_;
  std::unordered_map<ClientId, std::vector<Slot*>> watches_;
};

}  // namespace phalanx::store
