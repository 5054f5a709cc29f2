#include "engine/train/report/event_file.h"

#include <array>
#include <bit>

namespace phalanx::engine::train {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);  // the polynomial, reflected
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

template <typename T>
void put_fixed(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

// Protobuf's encoding (protobuf.dev/programming-guides/encoding): a key is the field's number and how its value is stored.
enum Stored : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, uint64_t field, Stored stored) { put_varint(out, field << 3 | stored); }
void put_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event(double wall_time, int64_t step) {
  std::string out;
  put_key(out, 1, kFixed64);
  put_fixed(out, std::bit_cast<uint64_t>(wall_time));
  if (step == 0) return out;  // proto3 leaves out zeros
  put_key(out, 2, kVarint);
  put_varint(out, static_cast<uint64_t>(step));
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view data) {
  uint32_t crc = ~0u;
  for (char byte : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view data) {
  const uint32_t crc = crc32c(data);
  return std::rotr(crc, 15) + 0xa282ead8u;  // tensorflow/core/lib/hash/crc32c.h
}

std::string encode_record(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 16);
  put_fixed(out, static_cast<uint64_t>(data.size()));
  put_fixed(out, masked_crc32c(out));
  out += data;
  put_fixed(out, masked_crc32c(data));
  return out;
}

std::string encode_file_version(double wall_time) {
  std::string out = event(wall_time, 0);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string encode_restart(double wall_time, int64_t step) {
  std::string log, out = event(wall_time, step);
  put_key(log, 1, kVarint);
  put_varint(log, 1);  // SessionLog.START
  put_bytes(out, 7, log);
  return out;
}

std::string encode_scalars(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary, out = event(wall_time, step);
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_key(value, 2, kFixed32);
    put_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(summary, 1, value);
  }
  put_bytes(out, 5, summary);
  return out;
}

}  // namespace phalanx::engine::train
