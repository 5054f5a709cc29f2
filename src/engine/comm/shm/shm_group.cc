#include "engine/comm/shm/shm_group.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/try.h"
#include "engine/comm/queued_group.h"
#include "engine/comm/shm/arithmetic.h"
#include "engine/comm/shm/windows.h"
#include "engine/comm/store_marks.h"
#include "engine/comm/subgroup.h"

namespace phalanx::engine::comm {
namespace {

constexpr std::chrono::minutes kMeetTimeout{1};
// Up to here a copy into the tray is cheaper than a second meeting, even for a tensor in a window.
constexpr size_t kTinyBytes = 16 << 10;
constexpr size_t kAlign = 4096;  // of a rank's bytes in a window: whole pages

char* bytes_at(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

class ShmGroup final : public QueuedGroup {
 public:
  ShmGroup(StoreHandle store, SharedHost host, const GroupOptions& options)
      : QueuedGroup(Runs::kAtWait, options),
        store_(std::move(store)),
        link_(std::move(host.link)),
        board_(std::move(host.board)),
        options_(options) {}
  ~ShmGroup() override { stop_thread(); }

  int rank() const override { return board_->index(); }
  int world() const override { return board_->count(); }
  at::Device device() const override { return at::kCPU; }
  std::string describe() const override { return fmt::format("shared memory of {} ranks", world()); }
  bool ordered_sums() const override { return true; }
  at::Tensor window(int64_t elements, at::ScalarType dtype) override;
  std::vector<at::Tensor> peers(const at::Tensor& window) override { return windows_.all(window, world()); }
  std::optional<at::Tensor> common(int64_t elements, at::ScalarType dtype) override;
  std::unique_ptr<Group> split(int color, int key) override;
  void leave() override {
    barrier("leave", options_.timeout);
    leave_store(store_, world(), options_.timeout);
  }

 protected:
  void carry_out(const Operation& operation) override;

 private:
  // What all ranks call, and where each one's tensor lies.
  struct Calls {
    std::vector<CallNote> notes;
    bool in_trays = true;
    bool in_windows = true;
  };
  CallNote own_note(const Operation& operation);
  Calls meet(const Operation& operation, const CallNote& note);
  char* shared(const Calls& calls, int index, size_t bytes);
  // Where rank r's share of the sums begins: whole cache lines for each, as far as it goes; r == world(): where they end.
  size_t share_begin(size_t elements, size_t size, int r) const {
    const size_t line = 64 / size;
    return r == world() ? elements : elements * static_cast<size_t>(r) / static_cast<size_t>(world()) / line * line;
  }
  void from_trays(const Operation& operation, int64_t begin, int64_t elements);
  void into_tray(const Operation& operation, int64_t begin, int64_t elements);
  void through_windows(const Operation& operation, const Calls& calls);
  void through_trays(const Operation& operation, const CallNote& note);
  void share_sums(const Operation& operation, const CallNote& note, int64_t begin, int64_t elements);
  std::shared_ptr<Mapping> map_for_all(size_t bytes, bool whole);

  StoreHandle store_;
  HostLink link_;
  std::unique_ptr<ShmBarrier> board_;
  GroupOptions options_;
  Windows windows_;
  uint64_t window_ids_ = 0;
  int splits_ = 0;
};

// Bytes that a rank puts in.
size_t own_bytes(const Operation& operation, int rank) {
  return operation.kind == Kind::kBroadcast && operation.root != rank ? 0 : bytes_of(operation);
}

Arithmetic arithmetic_of(const Operation& operation) { return {operation.reduction, dtype_of(operation), operation.output.scalar_type()}; }

CallNote ShmGroup::own_note(const Operation& operation) {
  CallNote note = comm::note_of(operation);
  if (operation.kind == Kind::kBarrier) return note;
  const size_t bytes = bytes_of(operation);
  auto found = windows_.find(operation.input.data_ptr(), bytes);
  if (!found && operation.kind == Kind::kAllGather) {  // the others may read it from where it has to go anyway
    char* place = bytes_at(operation.output) + bytes * static_cast<size_t>(rank());
    found = windows_.find(place, bytes);
    if (found && bytes > kTinyBytes) copy_row(place, bytes_at(operation.input), bytes);
  }
  if (found && found->common && (operation.kind == Kind::kAllReduce))
    throw std::invalid_argument("the tensor is in shared memory, so there is only one copy and nothing to sum");
  if (found) {
    note.window = found->id;
    note.offset = found->offset;
  }
  note.in_tray = bytes <= kTinyBytes || (!found && bytes <= ShmBarrier::kTrayBytes);
  return note;
}

ShmGroup::Calls ShmGroup::meet(const Operation& operation, const CallNote& note) {
  board_->write(note);
  board_->meet(operation.kind == Kind::kBarrier ? operation.deadline : options_.timeout);
  Calls calls;
  for (int r = 0; r < world(); ++r) calls.notes.push_back(r == rank() ? note : board_->read(r));
  check_equal(calls.notes, options_.check);
  for (const CallNote& one : calls.notes) {
    calls.in_trays = calls.in_trays && one.in_tray;
    calls.in_windows = calls.in_windows && one.window != 0 && one.window == note.window;
  }
  return calls;
}

char* ShmGroup::shared(const Calls& calls, int index, size_t bytes) {
  const CallNote& note = calls.notes[static_cast<size_t>(index)];
  char* address = windows_.address(note.window, index, note.offset, bytes);
  if (!address) throw std::runtime_error(fmt::format("rank {} refers to an address outside its window", index));
  return address;
}

void ShmGroup::carry_out(const Operation& operation) {
  try {
    const CallNote note = own_note(operation);
    if (note.in_tray) into_tray(operation, 0, elements_of(operation));
    const Calls calls = meet(operation, note);
    if (operation.kind == Kind::kBarrier) return;
    if (calls.in_trays) from_trays(operation, 0, elements_of(operation));
    else if (calls.in_windows) through_windows(operation, calls);
    else through_trays(operation, note);
  } catch (const std::exception& failure) { fail_within(say(operation), failure); }
}

// Elements [begin, begin + elements) of what this rank puts in; of reduce_scatter that part of every piece if not all of it.
void ShmGroup::into_tray(const Operation& operation, int64_t begin, int64_t elements) {
  if (own_bytes(operation, rank()) == 0) return;
  const size_t size = operation.input.element_size();
  const bool pieces = operation.kind == Kind::kReduceScatter;
  if (!pieces || elements == operation.input.numel())
    return copy_row(board_->tray(), bytes_at(operation.input) + static_cast<size_t>(begin) * size, static_cast<size_t>(elements) * size);
  const auto piece = static_cast<size_t>(operation.output.numel());
  for (int r = 0; r < world(); ++r)
    copy_row(board_->tray() + static_cast<size_t>(r) * static_cast<size_t>(elements) * size,
             bytes_at(operation.input) + (static_cast<size_t>(r) * piece + static_cast<size_t>(begin)) * size,
             static_cast<size_t>(elements) * size);
}

// The same elements of what this rank gets.
void ShmGroup::from_trays(const Operation& operation, int64_t begin, int64_t elements) {
  const size_t size = operation.input.element_size();
  const size_t at = static_cast<size_t>(begin) * size, bytes = static_cast<size_t>(elements) * size;
  std::vector<const void*> rows;
  switch (operation.kind) {
    case Kind::kAllReduce:
      for (int r = 0; r < world(); ++r) rows.push_back(board_->tray_of(r));
      return reduce_rows(arithmetic_of(operation), rows, {bytes_at(operation.output) + at}, elements);
    case Kind::kReduceScatter: {
      const int64_t mine = elements == operation.input.numel() ? operation.output.numel() : elements;
      const size_t place = static_cast<size_t>(rank()) * static_cast<size_t>(mine) * size;
      for (int r = 0; r < world(); ++r) rows.push_back(board_->tray_of(r) + place);
      const size_t to = static_cast<size_t>(begin) * operation.output.element_size();
      return reduce_rows(arithmetic_of(operation), rows, {bytes_at(operation.output) + to}, mine);
    }
    case Kind::kAllGather:
      for (int r = 0; r < world(); ++r)
        copy_row(bytes_at(operation.output) + static_cast<size_t>(r) * bytes_of(operation) + at, board_->tray_of(r), bytes);
      return;
    case Kind::kBroadcast:
      if (rank() != operation.root) copy_row(bytes_at(operation.output) + at, board_->tray_of(operation.root), bytes);
      return;
    case Kind::kBarrier: return;
  }
}

void ShmGroup::through_trays(const Operation& operation, const CallNote& note) {
  const bool pieces = operation.kind == Kind::kReduceScatter;
  const bool shared_sums = operation.kind == Kind::kAllReduce && world() > 2;  // each rank makes a part of them, for all
  const int64_t all = pieces ? operation.output.numel() : operation.input.numel();
  const auto size = static_cast<int64_t>(operation.input.element_size());
  const int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(ShmBarrier::kTrayBytes) / size / (pieces ? world() : 1));
  for (int64_t begin = 0; begin < all; begin += chunk) {
    const int64_t elements = std::min(chunk, all - begin);
    into_tray(operation, begin, elements);
    board_->write(note);
    board_->meet(options_.timeout);
    if (shared_sums) share_sums(operation, note, begin, elements);
    else from_trays(operation, begin, elements);
  }
}

// Elements [begin, begin + elements) of an all-reduce lie in everyone's trays: sums this rank's share of them into its next tray, and takes
// all shares.
void ShmGroup::share_sums(const Operation& operation, const CallNote& note, int64_t begin, int64_t elements) {
  const size_t size = operation.input.element_size();
  const auto edge = [&](int r) { return share_begin(static_cast<size_t>(elements), size, r); };
  const size_t own = edge(rank()), end = edge(rank() + 1);
  std::vector<const void*> rows;
  for (int r = 0; r < world(); ++r) rows.push_back(board_->tray_of(r) + own * size);
  reduce_rows(arithmetic_of(operation), rows, {board_->tray()}, static_cast<int64_t>(end - own));
  board_->write(note);
  board_->meet(options_.timeout);
  char* to = bytes_at(operation.output) + static_cast<size_t>(begin) * size;
  for (int r = 0; r < world(); ++r) copy_row(to + edge(r) * size, board_->tray_of(r), (edge(r + 1) - edge(r)) * size);
}

void ShmGroup::through_windows(const Operation& operation, const Calls& calls) {
  const size_t bytes = bytes_of(operation), size = operation.input.element_size();
  std::vector<const void*> rows;
  switch (operation.kind) {
    case Kind::kAllReduce: {
      const auto elements = static_cast<size_t>(operation.input.numel());
      const size_t begin = share_begin(elements, size, rank()), end = share_begin(elements, size, rank() + 1);
      std::vector<void*> results;
      for (int r = 0; r < world(); ++r) {
        rows.push_back(shared(calls, r, bytes) + begin * size);
        results.push_back(shared(calls, r, bytes) + begin * size);
      }
      reduce_rows(arithmetic_of(operation), rows, results, static_cast<int64_t>(end - begin));
      break;
    }
    case Kind::kReduceScatter: {
      const size_t piece = static_cast<size_t>(operation.output.numel()) * size;
      for (int r = 0; r < world(); ++r) rows.push_back(shared(calls, r, bytes) + piece * static_cast<size_t>(rank()));
      reduce_rows(arithmetic_of(operation), rows, {bytes_at(operation.output)}, operation.output.numel());
      break;
    }
    case Kind::kAllGather:
      for (int i = 0; i < world(); ++i) {  // each begins at itself, so that they do not all read the same
        const int r = (rank() + i) % world();
        copy_row(bytes_at(operation.output) + bytes * static_cast<size_t>(r),
                 r == rank() ? bytes_at(operation.input) : shared(calls, r, bytes), bytes);
      }
      break;
    case Kind::kBroadcast:
      if (rank() != operation.root) copy_row(bytes_at(operation.output), shared(calls, operation.root, bytes), bytes);
      break;
    case Kind::kBarrier: break;
  }
  board_->write(calls.notes[static_cast<size_t>(rank())]);
  board_->meet(options_.timeout);  // the others have read this rank's window, and written what they owe it
}

// A new segment that all ranks have mapped and whose memory is there; nullptr if any of them could not. whole: every rank takes an equal
// part of it, else `bytes` for each.
std::shared_ptr<Mapping> ShmGroup::map_for_all(size_t bytes, bool whole) {
  const auto ranks = static_cast<size_t>(world()), index = static_cast<size_t>(rank());
  const size_t total = whole ? bytes : bytes * ranks;
  base::Result<std::shared_ptr<Mapping>> mapped = [&]() -> base::Result<std::shared_ptr<Mapping>> {
    os::Fd fd;
    if (rank() == 0) {
      auto made = make_segment(total);
      if (made.ok()) fd = std::move(made.value());
      TRY(link_.give(fd, total));
      if (!made.ok()) return made.error();
    } else {
      TRY_ASSIGN(HostLink::Given given, link_.get(options_.timeout));
      fd = std::move(given.fd);
      if (!fd.valid() || given.bytes != total)
        return base::fail(base::ErrorKind::kUnfit, "the first rank of this host has no shared memory");
    }
    const size_t begin = total / kAlign * index / ranks * kAlign, end = total / kAlign * (index + 1) / ranks * kAlign;
    TRY(reserve(fd, begin, end - begin));
    return map_segment(fd, total);
  }();
  CallNote note;
  note.elements = mapped.ok() ? 1 : 0;
  board_->write(note);
  board_->meet(options_.timeout);
  for (int r = 0; r < world(); ++r)
    if ((r == rank() ? note : board_->read(r)).elements != 1) return nullptr;
  return mapped.value();
}

at::Tensor ShmGroup::window(int64_t elements, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  const size_t stride = std::max<size_t>((bytes + kAlign - 1) / kAlign, 1) * kAlign;
  const uint64_t id = ++window_ids_;
  auto mapping = map_for_all(stride, false);
  if (!mapping) return at::zeros({elements}, at::TensorOptions().dtype(dtype));
  return windows_.add(id, mapping, stride, rank(), elements, dtype);
}

std::optional<at::Tensor> ShmGroup::common(int64_t elements, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  const uint64_t id = ++window_ids_;
  auto mapping = map_for_all(std::max<size_t>((bytes + kAlign - 1) / kAlign, 1) * kAlign, true);
  if (!mapping) return std::nullopt;
  return windows_.add(id, mapping, 0, rank(), elements, dtype);
}

std::unique_ptr<Group> ShmGroup::split(int color, int key) {
  const Subgroup part = part_of(*this, color, key);
  const auto members = static_cast<int>(part.members.size());
  ++splits_;
  std::optional<HostLink> listening;
  if (part.rank == 0 && members > 1) {
    auto link = HostLink::listen();
    if (link.ok()) listening = std::move(link.value());
  }
  const std::vector<std::string> tokens = exchange(*this, listening ? listening->token() : "", "split");
  const auto attempt = [&]() -> base::Result<SharedHost> {
    const std::string& token = tokens[static_cast<size_t>(part.members.front())];
    if (token.empty()) return base::fail(base::ErrorKind::kUnfit, "its first rank cannot listen");
    if (part.rank > 0) {
      TRY_ASSIGN(HostLink link, HostLink::dial(token, part.rank));
      return share_host(std::move(link), part.rank, part.members);
    }
    TRY(listening->accept_all(members, kMeetTimeout, [] { return false; }));
    return share_host(std::move(*listening), part.rank, part.members);
  };
  base::Result<SharedHost> host = base::fail(base::ErrorKind::kInternal, "");
  if (members > 1) host = attempt();
  // Nobody uses the new memory before everybody has it.
  const base::Status split = agree(*this, members == 1 || host.ok() ? base::ok() : base::Status(host.error()), "splitting the group");
  if (!split.ok()) throw std::runtime_error(fmt::format("{}, because {}", split.error().message, split.error().cause));
  if (members == 1) return make_single_rank(device());
  return make_shm_group(StoreHandle{{}, false, true}, std::move(host.value()), options_of(part, options_, splits_, color));
}

}  // namespace

base::Result<SharedHost> share_host(HostLink link, int index, std::vector<int> ranks) {
  const size_t bytes = ShmBarrier::bytes_for(static_cast<int>(ranks.size()));
  os::Fd fd;
  if (index == 0) {
    auto made = make_segment(bytes);
    base::Status reserved = made.ok() ? reserve(made.value(), 0, bytes) : base::Status(made.error());
    if (reserved.ok()) fd = std::move(made.value());
    TRY(link.give(fd, bytes));
    TRY(std::move(reserved));
  } else {
    TRY_ASSIGN(HostLink::Given given, link.get(kMeetTimeout));
    if (!given.fd.valid() || given.bytes != bytes)
      return base::fail(base::ErrorKind::kUnfit, "the first rank of this host has no shared memory");
    fd = std::move(given.fd);
  }
  TRY_ASSIGN(std::shared_ptr<Mapping> mapping, map_segment(fd, bytes));
  TRY_ASSIGN(os::Fd own, open_again(fd));
  SharedHost host{std::move(link), std::make_unique<ShmBarrier>(std::move(mapping), std::move(own), index, std::move(ranks))};
  TRY(host.board->lock());
  return host;
}

std::unique_ptr<Group> make_shm_group(StoreHandle store, SharedHost host, const GroupOptions& options) {
  return std::make_unique<ShmGroup>(std::move(store), std::move(host), options);
}

}  // namespace phalanx::engine::comm
