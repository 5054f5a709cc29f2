#include "engine/data/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/counted.h"
#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/data/collate.h"
#include "engine/data/findings.h"
#include "engine/data/item_source.h"

namespace phalanx::engine::data {
namespace {

constexpr std::string_view kErrorMark = "an error stands here";
constexpr size_t kChunk = 4096;                         // items walked three times before the next ones
constexpr std::chrono::milliseconds kChunkTime{2'000};  // or fewer, where items are slow

std::string cause_of(const base::Error& error) { return error.cause.empty() ? error.message : error.cause; }

// Of everything in an item, or of the error in its place.
uint64_t hash_of(const base::Result<Sample>& sample) {
  comm::Fingerprint print;
  if (!sample.ok()) {
    print.add(kErrorMark);
    print.add(cause_of(sample.error()));
    return print.value();
  }
  for (const Field& field : *sample) {
    print.add(field.name);
    print.add(static_cast<int64_t>(field.value.scalar_type()));
    for (int64_t length : field.value.sizes()) print.add(length);
    const at::Tensor whole = field.value.contiguous();
    print.add(std::string_view(static_cast<const char*>(whole.data_ptr()), whole.nbytes()));
  }
  return print.value();
}

class Walk {
 public:
  Walk(ItemSource source, const WalkOptions& options) : source_(std::move(source)), options_(options) {
    PHALANX_CHECK(options.workers > 0);
  }

  // `next` gives the tickets one after the other, nothing at the end.
  WalkReport run(const std::function<base::Result<std::optional<Ticket>>()>& next) {
    auto told = std::chrono::steady_clock::now();
    bool more = true;
    while (more) {
      more = first_reading(next);
      second_reading();
      reading_by_threads();
      chunk_.clear();
      const auto now = std::chrono::steady_clock::now();
      if (!options_.progress || now - told < options_.every) continue;
      options_.progress(report_.items, findings_.problems());
      told = now;
    }
    note_lengths();
    report_.findings = findings_.sorted();
    return std::move(report_);
  }

 private:
  struct Seen {
    Ticket ticket;
    uint64_t hash;
    bool steady = true;
  };

  bool first_reading(const std::function<base::Result<std::optional<Ticket>>()>& next) {
    const auto began = std::chrono::steady_clock::now();
    while (chunk_.size() < kChunk && std::chrono::steady_clock::now() - began < kChunkTime) {
      auto ticket = next();
      if (!ticket.ok()) findings_.add(kUnreadable, [&] { return cause_of(ticket.error()); });
      if (!ticket.ok() || !*ticket) return false;
      const auto sample = load(**ticket);
      look_at(sample, **ticket);
      chunk_.push_back({**ticket, hash_of(sample)});
    }
    return true;
  }

  void second_reading() {
    for (Seen& seen : chunk_) {
      seen.steady = hash_of(load(seen.ticket)) == seen.hash;
      if (!seen.steady) findings_.add(kUnsteady, [&] { return source_.place(seen.ticket); });
    }
  }

  void reading_by_threads() {
    std::vector<uint64_t> hashes(chunk_.size());
    std::atomic<size_t> place{0};
    std::atomic<int> ready{0}, wanted{options_.workers};
    auto work = [&] {
      ++ready;
      while (ready < wanted) std::this_thread::yield();  // all at once, or the first thread does it alone
      for (size_t i = place++; i < chunk_.size(); i = place++) hashes[i] = hash_of(load(chunk_[i].ticket));
    };
    std::vector<std::thread> threads;
    try {
      for (int i = 0; i < options_.workers; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) { wanted = static_cast<int>(threads.size()); }  // the host allows no more
    if (threads.empty()) return findings_.add(kNoThreads, [] { return "the host does not allow more threads"; });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < chunk_.size(); ++i)
      if (chunk_[i].steady && hashes[i] != chunk_[i].hash) findings_.add(kRacy, [&] { return source_.place(chunk_[i].ticket); });
  }

  base::Result<Sample> load(const Ticket& ticket) const { return source_.load(ticket, options_.seed, 0); }

  void look_at(const base::Result<Sample>& sample, const Ticket& ticket) {
    ++report_.items;
    if (!sample.ok()) {
      findings_.add(kBadItem, [&] { return fmt::format("{}: {}", source_.place(ticket), cause_of(sample.error())); });
      return;
    }
    compare_shapes(*sample, ticket);
    for (const Field& field : *sample) {
      if (field.name == "tokens") look_at_tokens(field, ticket);
      if (field.name == "targets") look_at_targets(field, ticket);
    }
    auto row = std::find_if(sample->begin(), sample->end(), [](const Field& field) { return field.value.dim() == 1; });
    if (row != sample->end()) look_at_length(row->value.size(0), ticket);
  }

  void look_at_length(int64_t length, const Ticket& ticket) {
    if (length == 0) findings_.add(kEmpty, [&] { return source_.place(ticket); });
    if (length > 0 && length == options_.context) ++full_;
    report_.shortest = rows_ == 0 ? length : std::min(report_.shortest, length);
    report_.longest = std::max(report_.longest, length);
    ++rows_;
    ++report_.lengths[std::min<size_t>(std::bit_width(static_cast<uint64_t>(length)), report_.lengths.size() - 1)];
  }

  void look_at_tokens(const Field& field, const Ticket& ticket) {
    report_.tokens += field.value.numel();
    if (field.value.scalar_type() != at::kLong || field.value.numel() == 0) return;
    const int64_t* values = field.value.data_ptr<int64_t>();
    const auto [low, high] = std::minmax_element(values, values + field.value.numel());
    report_.largest_token = std::max(report_.largest_token, *high);
    refuse_outside(field.name, *low, *high, ticket);
  }

  void look_at_targets(const Field& field, const Ticket& ticket) {
    if (field.value.scalar_type() != at::kLong) return;
    const int64_t* values = field.value.data_ptr<int64_t>();
    int64_t count = 0, low = 0, high = 0;
    for (int64_t i = 0; i < field.value.numel(); ++i) {
      if (values[i] == kNoTarget) continue;
      ++count;
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
    report_.targets += count;
    if (count == 0 && field.value.numel() > 0) findings_.add(kNothingAsked, [&] { return source_.place(ticket); });
    refuse_outside(field.name, low, high, ticket);
  }

  void refuse_outside(const std::string& field, int64_t low, int64_t high, const Ticket& ticket) {
    const bool above = options_.vocabulary > 0 && static_cast<uint64_t>(std::max<int64_t>(high, 0)) >= options_.vocabulary;
    if (low >= 0 && !above) return;
    findings_.add(kOutside, [&] { return fmt::format("{}: {} contain {}", source_.place(ticket), field, low < 0 ? low : high); });
  }

  // Against the first item that could be read: what collate would refuse.
  void compare_shapes(const Sample& sample, const Ticket& ticket) {
    if (!first_) {
      first_ = sample;
      return;
    }
    if (sample.size() == first_->size() && same_shapes(sample)) return;
    const std::vector<Sample> two{*first_, sample};
    auto batch = collate(two, {});
    if (!batch.ok()) findings_.add(kUnlike, [&] { return fmt::format("{}: {}", source_.place(ticket), cause_of(batch.error())); });
  }

  bool same_shapes(const Sample& sample) const {
    for (size_t i = 0; i < sample.size(); ++i) {
      const at::Tensor &here = sample[i].value, &there = (*first_)[i].value;
      if (sample[i].name != (*first_)[i].name || here.sizes() != there.sizes() || here.scalar_type() != there.scalar_type()) return false;
    }
    return true;
  }

  void note_lengths() {
    if (report_.shortest != report_.longest)
      findings_.add(kRagged, [&] {
        const std::string multiple = options_.pad_multiple > 1 ? fmt::format(", to a multiple of {}", options_.pad_multiple) : "";
        return fmt::format("from {} to {}: rows of a batch are padded to its longest{}", report_.shortest, report_.longest, multiple);
      });
    if (full_ > 0 && report_.shortest != report_.longest)
      findings_.add(kFull, [&] { return base::counted("{} of {} items", full_, report_.items); });
  }

  ItemSource source_;
  const WalkOptions& options_;
  WalkReport report_;
  Findings findings_;
  std::vector<Seen> chunk_;
  std::optional<Sample> first_;
  int64_t rows_ = 0, full_ = 0;
};

}  // namespace

WalkReport walk(std::shared_ptr<const Dataset> set, const WalkOptions& options) {
  int64_t index = 0;
  const int64_t size = set->size();
  return Walk(ItemSource(std::move(set)), options).run([&]() -> base::Result<std::optional<Ticket>> {
    if (index == size) return std::optional<Ticket>();
    return std::optional(Ticket{index++, 0, 0});
  });
}

WalkReport walk(std::shared_ptr<Stream> stream, const WalkOptions& options) {
  stream->start(options.seed, 0);
  return Walk(ItemSource(std::shared_ptr<const Stream>(stream)), options).run([&] { return stream->next(); });
}

}  // namespace phalanx::engine::data
