#include "engine/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::checkpoint {
namespace {

using base::Json;

struct Dtype {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array kDtypes{Dtype{"BOOL", 1}, Dtype{"U8", 1},  Dtype{"I8", 1},   Dtype{"F8_E5M2", 1}, Dtype{"F8_E4M3", 1}, Dtype{"I16", 2},
                             Dtype{"U16", 2},  Dtype{"F16", 2}, Dtype{"BF16", 2}, Dtype{"I32", 4},     Dtype{"U32", 4},     Dtype{"F32", 4},
                             Dtype{"F64", 8},  Dtype{"I64", 8}, Dtype{"U64", 8},  Dtype{"C64", 8}};

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, "not a valid safetensors file").because(std::move(why)); }

// Reads the header event by event instead of as a tree: duplicate keys are seen, and a hostile header costs no more
// than its length.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool start_object(size_t) override {
    if (depth_ == 0) return ++depth_, true;
    if (depth_ == 1) {
      ++depth_;
      fields_ = 0;
      if (key_ == "__metadata__") return true;
      header.tensors.push_back({key_, {}, {}, 0, 0});
      return true;
    }
    return unexpected("an object");
  }
  bool end_object() override {
    if (depth_-- == 2 && !in_metadata() && fields_ != (kDtype | kShape | kOffsets))
      return stop(fmt::format("tensor {} lacks dtype, shape or data_offsets", base::quote(name_)));
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      name_ = key_ = text;
      return seen_.insert(text).second || stop(fmt::format("{} occurs twice", base::quote(text)));
    }
    key_ = text;
    if (in_metadata()) return header.metadata.emplace(text, "").second || stop(fmt::format("metadata {} occurs twice", base::quote(text)));
    const unsigned field = text == "dtype" ? kDtype : text == "shape" ? kShape : text == "data_offsets" ? kOffsets : kUnknown;
    if (field == kUnknown) return stop(fmt::format("tensor {} has an unknown field {}", base::quote(name_), base::quote(text)));
    if (fields_ & field) return stop(fmt::format("tensor {} has {} twice", base::quote(name_), text));
    fields_ |= field;
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ == 2 && in_metadata()) return header.metadata[key_] = text, true;
    if (depth_ == 2 && key_ == "dtype") return header.tensors.back().dtype = text, true;
    return unexpected("a string");
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata() || key_ == "dtype" || in_array_) return unexpected("an array");
    in_array_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    TensorInfo& tensor = header.tensors.back();
    if (key_ == "shape") {
      for (uint64_t size : numbers_) tensor.shape.push_back(static_cast<int64_t>(size));
      return true;
    }
    if (numbers_.size() != 2) return stop(fmt::format("tensor {}: data_offsets has {} numbers", base::quote(name_), numbers_.size()));
    tensor.begin = numbers_[0];
    tensor.end = numbers_[1];
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (!in_array_ || value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return unexpected("a number");
    if (numbers_.size() >= kMaxDimensions)
      return stop(fmt::format("tensor {} has more than {} dimensions", base::quote(name_), kMaxDimensions));
    numbers_.push_back(value);
    return true;
  }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a fraction"); }
  bool binary(Json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception&) override {
    return stop(fmt::format("its header is not valid JSON from byte {} on", place));
  }

 private:
  enum : unsigned { kUnknown = 0, kDtype = 1, kShape = 2, kOffsets = 4 };
  bool in_metadata() const { return name_ == "__metadata__"; }
  bool stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }
  bool unexpected(std::string_view what) { return stop(fmt::format("{} is not allowed at {}", what, base::quote(key_))); }

  int depth_ = 0;
  std::string name_;  // the key at depth 1
  std::string key_;   // the last key
  unsigned fields_ = 0;
  bool in_array_ = false;
  std::vector<uint64_t> numbers_;
  std::unordered_set<std::string> seen_;
};

// shape × element size, nullopt when it does not fit into 63 bits.
std::optional<uint64_t> byte_count(const TensorInfo& tensor) {
  uint64_t bytes = dtype_bytes(tensor.dtype);
  for (int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return bytes;
}

base::Status check_layout(std::vector<TensorInfo>& tensors, uint64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    if (dtype_bytes(tensor.dtype) == 0)
      return bad(fmt::format("tensor {} has the unknown dtype {}", base::quote(tensor.name), base::quote(tensor.dtype)));
    std::optional<uint64_t> bytes = byte_count(tensor);
    if (!bytes) return bad(fmt::format("tensor {} is too large", base::quote(tensor.name)));
    if (tensor.begin != expected)
      return bad(
          fmt::format("tensor {} starts at byte {}, not where the one before ends ({})", base::quote(tensor.name), tensor.begin, expected));
    if (tensor.end < tensor.begin || tensor.end - tensor.begin != *bytes)
      return bad(fmt::format("tensor {} has bytes {} to {}, but its shape needs {} bytes", base::quote(tensor.name), tensor.begin,
                             tensor.end, *bytes));
    expected = tensor.end;
  }
  if (expected != data_bytes) return bad(fmt::format("its tensors need {} bytes and it holds {}", expected, data_bytes));
  return base::ok();
}

}  // namespace

uint64_t dtype_bytes(std::string_view dtype) {
  for (const Dtype& one : kDtypes)
    if (one.name == dtype) return one.bytes;
  return 0;
}

base::Result<uint64_t> head_length(std::string_view first_bytes, uint64_t file_bytes) {
  if (first_bytes.size() < 8) return bad(fmt::format("it has {} bytes; the length of its header needs 8", first_bytes.size()));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(first_bytes[static_cast<size_t>(i)]);
  if (length > kMaxSafetensorsHeader) return bad(fmt::format("its header claims {} bytes; the limit is {}", length, kMaxSafetensorsHeader));
  if (length > file_bytes - 8) return bad(fmt::format("its header claims {} bytes, but only {} follow", length, file_bytes - 8));
  return 8 + length;
}

base::Result<SafetensorsHeader> parse_safetensors_head(std::string_view head, uint64_t file_bytes) {
  TRY_ASSIGN(const uint64_t length, head_length(head, file_bytes));
  PHALANX_CHECK(head.size() >= length);
  std::string_view text = head.substr(8, length - 8);
  if (text.empty() || text.front() != '{') return bad("its header does not start with an opening brace");

  HeaderReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader) || !reader.problem.empty())
    return bad(reader.problem.empty() ? "its header cannot be read" : reader.problem);
  reader.header.data_start = length;
  TRY(check_layout(reader.header.tensors, file_bytes - length));
  return std::move(reader.header);
}

base::Result<SafetensorsHeader> parse_safetensors(std::string_view file) { return parse_safetensors_head(file, file.size()); }

std::string make_safetensors_header(std::vector<TensorInfo>& tensors, const std::map<std::string, std::string>& metadata) {
  // Written piece by piece: a tree of our JSON type looks for each new key among all the others.
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + base::to_text(Json(metadata));
  uint64_t place = 0;
  for (TensorInfo& tensor : tensors) {
    std::optional<uint64_t> bytes = byte_count(tensor);
    PHALANX_CHECK(bytes && dtype_bytes(tensor.dtype) > 0);
    tensor.begin = place;
    tensor.end = place += *bytes;
    Json one = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
    if (text.size() > 1) text += ',';
    text += base::to_text(Json(tensor.name)) + ':' + base::to_text(one);
  }
  text += '}';
  while (text.size() % 8 != 0) text += ' ';
  std::string head;
  for (int i = 0; i < 8; ++i) head.push_back(static_cast<char>(uint64_t(text.size()) >> (8 * i)));
  return head + text;
}

}  // namespace phalanx::engine::checkpoint
