// What a training learns from: items that can be had by number (Dataset), or one after the other (Stream).
//
// An item is a few named tensors on the CPU. By convention `tokens` is what a language model reads and `targets`, of the same
// length, what it has to say at each place, kNoTarget where nothing is asked. Anything else is the user's: images, labels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/data/item_random.h"

namespace phalanx::engine::data {

inline constexpr int64_t kNoTarget = -100;  // torch's ignore_index of cross_entropy

struct Field {
  std::string name;
  at::Tensor value;  // dense, contiguous, on the CPU
};
using Sample = std::vector<Field>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::string name() const = 0;  // for people: "train.jsonl"
  virtual int64_t size() const = 0;
  // 0 <= index < size(). Called by several threads at once; the result may depend on index and random only. A failure is an Error
  // or an exception: the loader shows either with the set's name and the index.
  virtual base::Result<Sample> get(int64_t index, ItemRandom& random) const = 0;
  // Where item `index` comes from, for errors and reports: "b.jsonl:17".
  virtual std::string place(int64_t index) const { return name() + " item " + std::to_string(index); }
  // Equal for equal content; cheap on any size. Compared between ranks, and when a saved position is restored.
  virtual uint64_t fingerprint() const = 0;
};

// The ticket for one item of a stream: enough to load it later, in any thread. What the numbers mean is the stream's affair.
struct Ticket {
  int64_t number = 0;  // the item's, counted over one epoch in the order of the files; seeds its ItemRandom
  uint64_t file = 0;
  uint64_t offset = 0;
};

// Items in an order found by going through the data once. Every rank goes through the whole stream and takes every world-th
// ticket, so the order does not depend on the number of ranks; only its own items are loaded and parsed.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::string name() const = 0;
  virtual uint64_t fingerprint() const = 0;
  // Back to the first item of `epoch`.
  virtual void start(uint64_t seed, int64_t epoch) = 0;
  // The next ticket, nothing at the end. Never called by two threads at once.
  virtual base::Result<std::optional<Ticket>> next() = 0;
  // As Dataset::get: by several threads at once, also while another calls next().
  virtual base::Result<Sample> load(const Ticket& ticket, ItemRandom& random) const = 0;
  virtual std::string place(const Ticket& ticket) const = 0;
  // A copy of where the stream stands between two calls of next(), made into JSON only when it is called.
  virtual std::function<base::Json()> mark() const = 0;
  // To where the mark was taken. Error (kConfig): it is not of this stream.
  virtual base::Status seek(const base::Json& mark) = 0;
};

}  // namespace phalanx::engine::data
