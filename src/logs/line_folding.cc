#include "logs/line_folding.h"

#include <algorithm>
#include <cstring>

namespace phalanx::logs {
namespace {

uint64_t load(const char* at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Multiply-and-fold over 16 bytes at a time (the idea of wyhash). Equal hashes are compared byte by byte, so it only has
// to be quick and spread well.
uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kA = 0x9e3779b97f4a7c15u, kB = 0xc2b2ae3d27d4eb4fu;
  const char* at = text.data();
  size_t left = text.size();
  uint64_t hash = text.size() * kA;
  for (; left >= 16; left -= 16, at += 16) hash = mix(load(at, 8) ^ kA ^ hash, load(at + 8, 8) ^ kB);
  uint64_t low = load(at, std::min<size_t>(left, 8));
  uint64_t high = left > 8 ? load(at + 8, left - 8) : 0;
  return mix(low ^ kB ^ hash, high ^ kA);
}

}  // namespace

Folder::Folder(int ranks) : single_(ranks <= 1) {
  if (single_) return;
  entries_.resize(kMaxEntries);
  buckets_.assign(2 * kMaxEntries, -1);
  arena_.resize(kArenaBytes);
}

void Folder::lines(int rank, wire::Stream stream, std::string_view lines, os::Mono now, Sink& sink) {
  if (single_) return sink.pass(rank, stream, lines);
  tick(now, sink);
  size_t begin = 0, pass_from = 0;
  while (begin < lines.size()) {
    const void* found = std::memchr(lines.data() + begin, '\n', lines.size() - begin);
    size_t end = found ? static_cast<size_t>(static_cast<const char*>(found) - lines.data()) + 1 : lines.size();
    std::string_view line = lines.substr(begin, end - begin);
    if (line.size() <= kMaxFoldedBytes) {
      uint64_t hash = hash_of(line);
      Entry* entry = find(hash, stream, line);
      if (entry && hold(*entry, rank)) {
        if (pass_from < begin) sink.pass(rank, stream, lines.substr(pass_from, begin - pass_from));
        pass_from = end;
        while (held_ > kMaxHeld) forget_oldest(sink);
      } else if (!entry) {
        remember(hash, rank, stream, line, now, sink);
      }
    }
    begin = end;
  }
  if (pass_from < lines.size()) sink.pass(rank, stream, lines.substr(pass_from));
}

Folder::Entry* Folder::find(uint64_t hash, wire::Stream stream, std::string_view line) {
  for (int32_t i = bucket(hash); i >= 0; i = entries_[static_cast<size_t>(i)].next) {
    Entry& entry = entries_[static_cast<size_t>(i)];
    if (entry.hash == hash && entry.stream == stream && text_of(entry) == line) return &entry;
  }
  return nullptr;
}

// Whether this occurrence stands behind one that was passed on; else it is to be passed on itself.
bool Folder::hold(Entry& entry, int rank) {
  if (entry.ranks.empty()) {
    if (rank == entry.first_rank) {
      ++entry.passed;
      return false;
    }
    entry.ranks.push_back({entry.first_rank, entry.passed, 0});
  }
  auto seen = std::find_if(entry.ranks.begin(), entry.ranks.end(), [&](const Seen& s) { return s.rank == rank; });
  if (seen == entry.ranks.end()) seen = entry.ranks.insert(seen, {rank, 0, 0});
  if (seen->times++ == entry.passed) {
    ++entry.passed;
    return false;
  }
  if (seen->held++ == 0) ++held_;
  return true;
}

void Folder::remember(uint64_t hash, int rank, wire::Stream stream, std::string_view line, os::Mono now, Sink& sink) {
  if (next_ - oldest_ == kMaxEntries) forget_oldest(sink);
  size_t offset = arena_end_ % kArenaBytes;
  if (offset + line.size() > kArenaBytes) arena_end_ += kArenaBytes - offset;
  uint64_t position = arena_end_;
  arena_end_ += line.size();
  while (oldest_ < next_ && slot(oldest_).position + kArenaBytes < arena_end_) forget_oldest(sink);
  std::memcpy(arena_.data() + position % kArenaBytes, line.data(), line.size());
  Entry& entry = slot(next_);
  entry.hash = hash;
  entry.position = position;
  entry.first_seen = now;
  entry.length = static_cast<uint32_t>(line.size());
  entry.passed = 1;
  entry.first_rank = rank;
  entry.stream = stream;
  entry.next = bucket(hash);
  bucket(hash) = static_cast<int32_t>(next_ % kMaxEntries);
  ++next_;
}

void Folder::forget_oldest(Sink& sink) {
  if (oldest_ == next_) return;
  Entry& entry = slot(oldest_);
  int32_t self = static_cast<int32_t>(oldest_ % kMaxEntries);
  int32_t* link = &bucket(entry.hash);
  while (*link != self) link = &entries_[static_cast<size_t>(*link)].next;
  *link = entry.next;
  ++oldest_;
  size_t times = 0;
  given_ranks_.clear();
  for (const Seen& seen : entry.ranks) {
    if (seen.held == 0) continue;
    given_ranks_.push_back(seen.rank);
    times += seen.held;
  }
  held_ -= given_ranks_.size();
  if (!entry.ranks.empty()) std::vector<Seen>().swap(entry.ranks);
  if (times == 0) return;
  std::sort(given_ranks_.begin(), given_ranks_.end());
  sink.folded(entry.stream, text_of(entry), given_ranks_, times);
}

void Folder::tick(os::Mono now, Sink& sink) {
  while (oldest_ < next_ && slot(oldest_).first_seen + kWindow <= now) forget_oldest(sink);
}

std::optional<os::Mono> Folder::due() const {
  if (held_ == 0) return std::nullopt;
  return entries_[oldest_ % kMaxEntries].first_seen + kWindow;
}

void Folder::flush(Sink& sink) {
  while (oldest_ < next_) forget_oldest(sink);
}

}  // namespace phalanx::logs
