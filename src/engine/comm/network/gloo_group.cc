#include "engine/comm/network/gloo_group.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "base/text.h"
#include "engine/comm/call_note.h"
#include "engine/comm/in_store.h"
#include "engine/comm/messages.h"
#include "engine/comm/queued_group.h"
#include "engine/comm/shm/arithmetic.h"

namespace phalanx::engine::comm {

#ifdef PHALANX_GLOO
namespace {

using Gloo = c10d::ProcessGroupGloo;

// Up to here everyone sends everything to everyone: one round of messages instead of two.
constexpr size_t kSmallBytes = 32 << 10;
// A piece goes in chunks, so that sums and messages overlap and the memory for what has arrived stays small: a quarter of the piece
// within these bounds (measured between two hosts: chunks of 1 MiB are best for 4 MiB, of 4 MiB for 64).
constexpr size_t kChunkBytes = 1 << 20, kLongestChunkBytes = 4 << 20;
constexpr size_t kBroadcastChunkBytes = 4 << 20;
// Up to here two ranks send each other everything: one round, but twice the sums.
constexpr size_t kPairBytes = 2 << 20;

class GlooGroup final : public InStore<QueuedGroup> {
 public:
  GlooGroup(StoreHandle store, c10::intrusive_ptr<Gloo> backend, Place place, const GroupOptions& options)
      : InStore(std::move(store), std::move(place), options, Runs::kInThread, options), backend_(std::move(backend)) {}
  ~GlooGroup() override { stop_thread(); }

  std::string describe() const override {
    const std::string& where = place().interfaces.empty() ? place().address : place().interfaces;
    const std::string why = options().instead_of.empty() ? "" : fmt::format(" ({})", options().instead_of);
    return fmt::format("gloo on {} between {} ranks{}", where.empty() ? "the host name's address" : where, world(), why);
  }
  bool ordered_sums() const override { return true; }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override { return at::zeros({elements}, at::TensorOptions().dtype(dtype)); }

 protected:
  void carry_out(const Operation& operation) override {
    try {
      if (options().check) compare_calls(operation);
      switch (operation.kind) {
        case Kind::kAllReduce: return all_reduce_now(operation);
        case Kind::kReduceScatter: return reduce_scatter_now(operation);
        case Kind::kAllGather: return all_gather_now(operation);
        case Kind::kBroadcast: return broadcast_now(operation);
        case Kind::kBarrier: return barrier_now(operation);
      }
    } catch (const std::exception& failure) { fail_within(say(operation), failure); }
  }

 private:
  // Where a rank's piece of a tensor lies, and how large it is. Pieces of an all-reduce need not be equal.
  struct Piece {
    char* at = nullptr;
    size_t bytes = 0;
  };
  void compare_calls(const Operation& operation);
  void all_reduce_now(const Operation& operation);
  void all_reduce_small(const Operation& operation);
  void all_reduce_pair(const Operation& operation);
  void reduce_scatter_now(const Operation& operation);
  void all_gather_now(const Operation& operation);
  void broadcast_now(const Operation& operation);
  void barrier_now(const Operation& operation);
  void reduce_pieces(const Operation& operation, const std::vector<Piece>& pieces, char* result, bool share);
  char* scratch(size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

  c10::intrusive_ptr<Gloo> backend_;
  std::vector<char> scratch_;
};

char* bytes_at(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }
size_t element_bytes(const Operation& operation) { return operation.input.element_size(); }
Arithmetic arithmetic_of(const Operation& operation) { return {operation.reduction, dtype_of(operation), operation.output.scalar_type()}; }

// A deadline of a barrier counts here already.
void GlooGroup::compare_calls(const Operation& operation) {
  std::vector<CallNote> notes(static_cast<size_t>(world()));
  CallNote& own = notes[static_cast<size_t>(rank())];
  own = note_of(operation);
  Batch batch(*backend_);
  for (int r = 0; r < world(); ++r) {
    if (r == rank()) continue;
    batch.receive(r, operation.sequence * 2, &notes[static_cast<size_t>(r)], sizeof(CallNote));
    batch.send(r, operation.sequence * 2, &own, sizeof(CallNote));
  }
  batch.finish(operation.deadline);
  check_equal(notes, /*with_label=*/true);
}

void GlooGroup::all_reduce_now(const Operation& operation) {
  if (world() == 2 && bytes_of(operation) <= kPairBytes) return all_reduce_pair(operation);
  if (bytes_of(operation) <= kSmallBytes) return all_reduce_small(operation);
  const size_t size = element_bytes(operation);
  const size_t elements = static_cast<size_t>(operation.input.numel()), ranks = static_cast<size_t>(world());
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks; ++r) {
    const size_t begin = elements * r / ranks, end = elements * (r + 1) / ranks;
    pieces.push_back({bytes_at(operation.input) + begin * size, (end - begin) * size});
  }
  reduce_pieces(operation, pieces, pieces[static_cast<size_t>(rank())].at, /*share=*/true);
}

void GlooGroup::all_reduce_small(const Operation& operation) {
  const size_t bytes = bytes_of(operation), ranks = static_cast<size_t>(world());
  char* arrived = scratch(bytes * ranks);
  Batch batch(*backend_);
  std::vector<const void*> rows;
  for (int r = 0; r < world(); ++r) {
    char* row = r == rank() ? bytes_at(operation.input) : arrived + bytes * static_cast<size_t>(r);
    rows.push_back(row);
    if (r == rank()) continue;
    batch.receive(r, operation.sequence * 2, row, bytes);
    batch.send(r, operation.sequence * 2, bytes_at(operation.input), bytes);
  }
  batch.finish();
  reduce_rows(arithmetic_of(operation), rows, {bytes_at(operation.output)}, operation.input.numel());
}

// Each of two ranks sends all of it and sums by itself: the same bytes as to send pieces and then sums of pieces, in one round.
void GlooGroup::all_reduce_pair(const Operation& operation) {
  const int peer = 1 - rank();
  const size_t bytes = bytes_of(operation), size = element_bytes(operation), chunk = std::min(kChunkBytes, bytes);
  char* own = bytes_at(operation.input);
  char* arrived[2] = {scratch(2 * chunk), scratch(0) + chunk};
  std::vector<Batch> under_way(2, Batch(*backend_));
  const auto post = [&](size_t begin) {
    const size_t k = begin / chunk % 2, n = std::min(chunk, bytes - begin);
    under_way[k].receive(peer, operation.sequence * 2, arrived[k], n);
    under_way[k].send(peer, operation.sequence * 2, own + begin, n);
  };
  if (bytes > 0) post(0);
  for (size_t begin = 0; begin < bytes; begin += chunk) {
    if (begin + chunk < bytes) post(begin + chunk);
    const size_t k = begin / chunk % 2, n = std::min(chunk, bytes - begin);
    under_way[k].finish();
    const void* mine = own + begin;
    const void* theirs = arrived[k];
    reduce_rows(arithmetic_of(operation), rank() == 0 ? std::vector{mine, theirs} : std::vector{theirs, mine}, {own + begin},
                static_cast<int64_t>(n / size));
  }
}

void GlooGroup::reduce_scatter_now(const Operation& operation) {
  std::vector<Piece> pieces;
  const size_t bytes = bytes_of(operation) / static_cast<size_t>(world());
  for (int r = 0; r < world(); ++r) pieces.push_back({bytes_at(operation.input) + bytes * static_cast<size_t>(r), bytes});
  reduce_pieces(operation, pieces, bytes_at(operation.output), /*share=*/false);
}

// Sends every rank its piece chunk by chunk and sums the own one into `result`; share: sends that to every rank at once and receives
// theirs into their pieces. A rank's result of a chunk can only arrive when it has got this rank's part of it, so that the part has been
// read by then.
void GlooGroup::reduce_pieces(const Operation& operation, const std::vector<Piece>& pieces, char* result, bool share) {
  const size_t size = element_bytes(operation), peers = static_cast<size_t>(world() - 1);
  size_t largest = 0;
  for (const Piece& piece : pieces) largest = std::max(largest, piece.bytes);
  const size_t wanted = std::clamp(largest / 4, kChunkBytes, kLongestChunkBytes);
  const size_t chunk = std::max<size_t>(wanted / peers / size, 4096) * size;
  const uint64_t tag = operation.sequence * 2;
  const Piece own = pieces[static_cast<size_t>(rank())];
  const size_t chunks = (largest + chunk - 1) / chunk;
  char* arrived[2] = {scratch(2 * peers * chunk), scratch(0) + peers * chunk};
  const auto part = [chunk](const Piece& piece, size_t k) {
    return Piece{piece.at + k * chunk, piece.bytes > k * chunk ? std::min(chunk, piece.bytes - k * chunk) : 0};
  };
  std::vector<Batch> parts(2, Batch(*backend_));
  Batch results(*backend_);
  const auto post = [&](size_t k) {
    const size_t mine = part(own, k).bytes;
    char* place = arrived[k % 2];
    for (int r = 0; r < world(); ++r) {
      if (r == rank()) continue;
      const Piece theirs = part(pieces[static_cast<size_t>(r)], k);
      parts[k % 2].receive(r, tag, place, mine);
      place += chunk;
      parts[k % 2].send(r, tag, theirs.at, theirs.bytes);
      if (share) results.receive(r, tag + 1, theirs.at, theirs.bytes);
    }
  };
  post(0);
  for (size_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) post(k + 1);
    parts[k % 2].finish();
    const size_t mine = part(own, k).bytes;
    std::vector<const void*> rows;
    const char* place = arrived[k % 2];
    for (int r = 0; r < world(); ++r) {
      rows.push_back(r == rank() ? part(own, k).at : place);
      if (r != rank()) place += chunk;
    }
    reduce_rows(arithmetic_of(operation), rows, {result + k * chunk / size * operation.output.element_size()},
                static_cast<int64_t>(mine / size));
    for (int r = 0; share && r < world(); ++r)
      if (r != rank()) results.send(r, tag + 1, result + k * chunk, mine);
  }
  results.finish();
}

void GlooGroup::all_gather_now(const Operation& operation) {
  const size_t bytes = bytes_of(operation);
  const auto piece = [&](int r) { return bytes_at(operation.output) + bytes * static_cast<size_t>(r); };
  Batch batch(*backend_);
  for (int r = 0; r < world(); ++r)
    if (r != rank()) batch.receive(r, operation.sequence * 2, piece(r), bytes);
  for (int r = 0; r < world(); ++r)
    if (r != rank()) batch.send(r, operation.sequence * 2, bytes_at(operation.input), bytes);
  copy_row(piece(rank()), bytes_at(operation.input), bytes);
  batch.finish();
}

// Down a binomial tree with the root at place 0: the parent of a place is it without its highest bit. Chunk by chunk, so that a rank
// passes on what it has while more arrives.
void GlooGroup::broadcast_now(const Operation& operation) {
  const size_t bytes = bytes_of(operation);
  const int place = (rank() - operation.root + world()) % world();
  const auto at_place = [&](int p) { return (p + operation.root) % world(); };
  char* data = bytes_at(operation.input);
  const uint64_t tag = operation.sequence * 2;
  const size_t chunk = world() == 2 ? bytes : kBroadcastChunkBytes;
  std::vector<Batch> arriving;
  for (size_t begin = 0; place > 0 && begin < bytes; begin += chunk) {
    arriving.emplace_back(*backend_);
    const int parent = at_place(place - static_cast<int>(std::bit_floor(static_cast<unsigned>(place))));
    arriving.back().receive(parent, tag, data + begin, std::min(chunk, bytes - begin));
  }
  Batch leaving(*backend_);
  for (size_t begin = 0; begin < bytes; begin += chunk) {
    if (place > 0) arriving[begin / chunk].finish();
    for (int step = 1; place + step < world(); step *= 2)
      if (step > place) leaving.send(at_place(place + step), tag, data + begin, std::min(chunk, bytes - begin));
  }
  leaving.finish();
}

// The messages notice a rank that died at once.
void GlooGroup::barrier_now(const Operation& operation) {
  meet_marked(operation.deadline, [&](auto) {
    std::vector<char> bytes(static_cast<size_t>(world()));
    Batch batch(*backend_);
    for (int r = 0; r < world(); ++r) {
      if (r == rank()) continue;
      batch.receive(r, operation.sequence * 2, &bytes[static_cast<size_t>(r)], 1);
      batch.send(r, operation.sequence * 2, &bytes[static_cast<size_t>(rank())], 1);
    }
    batch.finish(operation.deadline);
  });
}

// Gloo writes to sockets whose other end may be gone, and leaves the signal for that to the program; Python ignores it from the start.
void ignore_broken_pipes() {
  struct sigaction now{};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

c10::intrusive_ptr<Gloo> connect(const StoreHandle& store, const Place& place, const GroupOptions& wanted) {
  ignore_broken_pipes();
  auto options = Gloo::Options::create(wanted.timeout);
  options->threads = 1;  // of Gloo's own collectives, of which none is used
  for (std::string_view name : base::split(place.interfaces, ','))
    if (!name.empty()) options->devices.push_back(Gloo::createDeviceForInterface(std::string(name)));
  if (options->devices.empty())
    options->devices.push_back(place.address.empty() ? Gloo::createDefaultDevice() : Gloo::createDeviceForHostname(place.address));
  return c10::make_intrusive<Gloo>(store.store, place.rank, place.world, options);
}

}  // namespace

std::unique_ptr<Group> make_gloo_group(StoreHandle store, const Place& place, const GroupOptions& options) {
  auto backend = connect(store, place, options);
  return std::make_unique<GlooGroup>(std::move(store), std::move(backend), place, options);
}

#else

std::unique_ptr<Group> make_gloo_group(StoreHandle, const Place&, const GroupOptions&) {
  throw std::runtime_error("this phalanx-train was built without Gloo's headers (Debian: libgloo-dev); it runs on one rank or on GPUs");
}

#endif

}  // namespace phalanx::engine::comm
