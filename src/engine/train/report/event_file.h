// The bytes of TensorBoard's event files. Pure.
//
// A file is a sequence of records (TFRecord): length as u64, masked CRC-32C of these 8 bytes, data, masked CRC-32C of the data, all
// little-endian (tensorflow/core/lib/io/record_writer.h). A record's data is a protobuf message Event (tensorflow/core/util/event.proto,
// fields used here: wall_time = 1 double, step = 2 int64, file_version = 3 string, summary = 5, session_log = 7), whose Summary
// (tensorflow/core/framework/summary.proto) has repeated values {tag = 1 string, simple_value = 2 float}.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace phalanx::engine::train {

uint32_t crc32c(std::string_view data);         // Castagnoli; RFC 3720, appendix B.4 has values to check with
uint32_t masked_crc32c(std::string_view data);  // as records hold it

std::string encode_record(std::string_view data);

struct Scalar {
  std::string_view tag;  // UTF-8
  double value = 0;      // stored as a float
};
// Messages; encode_record() makes records of them. wall_time: seconds since 1970.
std::string encode_file_version(double wall_time);           // has to be the first of a file
std::string encode_restart(double wall_time, int64_t step);  // what other files say of this step and later ones is void
std::string encode_scalars(double wall_time, int64_t step, std::span<const Scalar> scalars);

}  // namespace phalanx::engine::train
