// A block is a sequence of: a byte with two counts, literal bytes, and a distance back to bytes that are repeated. The compressor takes the
// last place where the next four bytes stood, and looks at fewer and fewer places while it finds none.
#include "base/lz4.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace phalanx::base {
namespace {

constexpr size_t kLeastMatch = 4, kLastLiterals = 5, kNoMatchBefore = 12;  // of the format
constexpr size_t kMostDistance = 65535;
constexpr unsigned kHashBits = 13, kSlowness = 5;
constexpr size_t kFull = 15;  // a count that goes on in more bytes

uint32_t four(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

char* put_count(size_t count, char* to) {
  for (; count >= 255; count -= 255) *to++ = '\xff';
  *to++ = static_cast<char>(count);
  return to;
}

// Few bytes, which most copies are, in one step of a fixed size where there is room; `size` of them count.
constexpr size_t kStep = 16;
void copy(const char* from, size_t size, char* to, bool room) {
  if (room && size <= kStep) std::memcpy(to, from, kStep);
  else if (size > 0) std::memcpy(to, from, size);
}

// room: kStep bytes can be read from the literals on.
char* put_sequence(std::string_view literals, bool room, size_t distance, size_t match, char* to) {
  const size_t more = match - (match > 0 ? kLeastMatch : 0);
  *to++ = static_cast<char>((std::min(literals.size(), kFull) << 4) | std::min(more, kFull));
  if (literals.size() >= kFull) to = put_count(literals.size() - kFull, to);
  copy(literals.data(), literals.size(), to, room);
  to += literals.size();
  if (match == 0) return to;
  *to++ = static_cast<char>(distance & 255);
  *to++ = static_cast<char>(distance >> 8);
  return more >= kFull ? put_count(more - kFull, to) : to;
}

size_t equal_from(const char* a, const char* b, const char* end) {
  const char* const begin = b;
  for (uint64_t x, y; b + sizeof(x) <= end; a += sizeof(x), b += sizeof(x)) {
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    if (x != y) return static_cast<size_t>(b - begin) + static_cast<size_t>(__builtin_ctzll(x ^ y)) / 8;
  }
  while (b < end && *a == *b) ++a, ++b;
  return static_cast<size_t>(b - begin);
}

// False: the block ends first.
bool read_count(const uint8_t*& at, const uint8_t* end, size_t& count) {
  if (count != kFull) return true;
  uint8_t more = 255;
  while (more == 255) {
    if (at == end || count > kMostLz4Bytes) return false;
    count += more = *at++;
  }
  return true;
}

}  // namespace

void lz4_compress(std::string_view bytes, std::string& out) {
  PHALANX_CHECK(bytes.size() <= kMostLz4Bytes);
  std::array<uint32_t, 1 << kHashBits> last{};  // by a hash of four bytes: where they stood, plus 1
  const char* const begin = bytes.data();
  const size_t before_it = out.size();
  out.resize(before_it + bytes.size() + bytes.size() / 255 + 16 + kStep);  // no block is longer
  char* to = out.data() + before_it;
  size_t done = 0;  // literals begin here
  if (bytes.size() > kNoMatchBefore) {
    const size_t limit = bytes.size() - kNoMatchBefore;
    const char* const end = begin + bytes.size() - kLastLiterals;
    for (size_t at = 0, tried = 1 << kSlowness; at < limit;) {
      uint32_t& slot = last[(four(begin + at) * 2654435761U) >> (32 - kHashBits)];
      const size_t before = slot;
      slot = static_cast<uint32_t>(at) + 1;
      if (before == 0 || at + 1 - before > kMostDistance || four(begin + before - 1) != four(begin + at)) {
        at += tried++ >> kSlowness;
        continue;
      }
      size_t from = before - 1;
      for (; at > done && from > 0 && begin[at - 1] == begin[from - 1]; --from) --at;
      const size_t match = equal_from(begin + from, begin + at, end);
      to = put_sequence(bytes.substr(done, at - done), done + kStep <= bytes.size(), at - from, match, to);
      at += match;
      done = at;
      tried = 1 << kSlowness;
    }
  }
  to = put_sequence(bytes.substr(done), false, 0, 0, to);
  out.resize(static_cast<size_t>(to - out.data()));
}

bool lz4_decompress(std::string_view block, size_t size, std::string& out) {
  if (size > kMostLz4Bytes) return false;
  out.resize(size);
  const auto* at = reinterpret_cast<const uint8_t*>(block.data());
  const uint8_t* const end = at + block.size();
  size_t made = 0;
  while (at != end) {
    size_t literals = *at >> 4, match = *at & 15;
    ++at;
    if (!read_count(at, end, literals) || literals > static_cast<size_t>(end - at) || literals > size - made) return false;
    copy(reinterpret_cast<const char*>(at), literals, out.data() + made, size - made >= kStep && static_cast<size_t>(end - at) >= kStep);
    made += literals;
    at += literals;
    if (at == end) return made == size && match == 0;
    if (end - at < 2) return false;
    const size_t distance = at[0] | size_t{at[1]} << 8;
    at += 2;
    if (!read_count(at, end, match)) return false;
    match += kLeastMatch;
    if (distance == 0 || distance > made || match > size - made) return false;
    char* to = out.data() + made;
    const char* const from = to - distance;
    if (distance >= match || (distance >= kStep && match <= kStep)) copy(from, match, to, distance >= kStep && size - made >= kStep);
    else
      for (size_t i = 0; i < match; ++i) to[i] = from[i];
    made += match;
  }
  return false;  // a block ends with literals
}

}  // namespace phalanx::base
