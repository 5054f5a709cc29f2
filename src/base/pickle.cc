#include "base/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/counted.h"

namespace phalanx::base {
namespace {

// Opcodes by the names of CPython's pickle.py.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloat = 'F',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

// What would import or run something.
const char* forbidden(uint8_t op) {
  switch (op) {
    case 'c':
    case 0x93: return "a class or function";
    case 'R':
    case 'i':
    case 'o':
    case 0x81:
    case 0x92:
    case 'b': return "a call";
    case 'P':
    case 'Q': return "a persistent id";
    case 0x82:
    case 0x83:
    case 0x84: return "an extension";
    case 0x97:
    case 0x98: return "an out-of-band buffer";
    default: return nullptr;
  }
}

struct Value {
  enum Kind : uint8_t { kScalar, kArray, kObject, kMarker } kind = kScalar;
  Json scalar;
  std::vector<size_t> items;  // of an object: key, value, key, value
};

class Reader {
 public:
  Reader(std::string_view bytes, const PickleLimits& limits) : bytes_(bytes), limits_(limits) {}

  Result<Json> read() {
    if (bytes_.size() > limits_.bytes) return fail(ErrorKind::kConfig, counted("a pickle of more than {} bytes", limits_.bytes));
    while (!done_ && fault_.empty()) {
      op_at_ = at_;
      step(number<uint8_t>());
    }
    Json json;
    if (fault_.empty()) json = written(root_, 0);
    if (!fault_.empty()) return fail(ErrorKind::kConfig, fmt::format("not a pickle of plain data: {} at byte {}", fault_, op_at_));
    return json;
  }

 private:
  void refuse(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      refuse("it ends in the middle");
      at_ = bytes_.size();
      return {};
    }
    std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  std::string_view line() {
    size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos || end - at_ > 4096) return refuse("a line without an end"), std::string_view();
    std::string_view text = take(end - at_);
    ++at_;
    return text;
  }
  // As everything in a pickle but BINFLOAT.
  static uint64_t little_endian(std::string_view raw) {
    uint64_t value = 0;
    for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(raw[i]);
    return value;
  }
  template <typename T>
  T number() {
    return static_cast<T>(little_endian(take(sizeof(T))));
  }

  size_t add(Value value) {
    if (values_.size() >= limits_.values) refuse(counted("more than {} values", limits_.values));
    else values_.push_back(std::move(value));
    return values_.size() - 1;
  }
  void push(Json scalar) { stack_.push_back(add({Value::kScalar, std::move(scalar), {}})); }
  void push(Value::Kind kind, std::vector<size_t> items = {}) { stack_.push_back(add({kind, {}, std::move(items)})); }
  size_t pop() {
    if (stack_.empty() || values_[stack_.back()].kind == Value::kMarker) return refuse("a value is missing"), none();
    size_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  size_t none() { return values_.empty() ? (values_.emplace_back(), 0) : 0; }
  // Everything above the last mark, which goes too.
  std::vector<size_t> above_mark() {
    size_t mark = stack_.size();
    while (mark > 0 && values_[stack_[mark - 1]].kind != Value::kMarker) --mark;
    if (mark == 0) return refuse("a mark is missing"), std::vector<size_t>();
    std::vector<size_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return items;
  }
  void extend(Value::Kind kind, const std::vector<size_t>& items) {
    if (stack_.empty() || values_[stack_.back()].kind != kind) return refuse("items for what holds none");
    if (kind == Value::kObject && items.size() % 2 != 0) return refuse("a key without a value");
    added_ += items.size();
    if (added_ > 2 * limits_.values) return refuse(counted("more than {} values", limits_.values));
    std::vector<size_t>& all = values_[stack_.back()].items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void tuple(size_t count) {
    std::vector<size_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push(Value::kArray, std::move(items));
  }
  void put(uint64_t key) {
    if (stack_.empty()) return refuse("nothing to remember");
    if (memo_.size() >= limits_.values) return refuse("too much is remembered");
    memo_[key] = stack_.back();
  }
  void get(uint64_t key) {
    auto found = memo_.find(key);
    if (found == memo_.end()) return refuse("something is recalled that was never remembered");
    again(found->second);
  }
  void again(size_t value) {
    if (stack_.size() >= limits_.values) return refuse(counted("more than {} values", limits_.values));
    stack_.push_back(value);
  }
  uint64_t index_of(std::string_view text) {
    uint64_t value = 0;
    for (char c : text) {
      if (c < '0' || c > '9' || value > (uint64_t{1} << 40)) return refuse("a bad number"), 0;
      value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    return value;
  }
  void decimal(std::string_view text) {
    if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
    if (text == "01" || text == "00") return push(Json(text == "01"));  // protocol 0's True and False
    errno = 0;
    std::string copy(text);
    char* end = nullptr;
    int64_t value = std::strtoll(copy.c_str(), &end, 10);
    if (copy.empty() || *end != '\0' || errno != 0) return refuse("a bad number");
    push(Json(value));
  }
  void long_integer(uint64_t size) {
    std::string_view raw = take(size);
    if (size > 8) return refuse("an integer of more than 64 bits");
    uint64_t value = little_endian(raw);
    if (size > 0 && size < 8 && (value >> (8 * size - 1) & 1)) value |= ~uint64_t{0} << (8 * size);
    push(Json(static_cast<int64_t>(value)));
  }
  void big_endian_double() {
    std::string_view raw = take(8);
    uint64_t value = 0;
    for (char c : raw) value = value << 8 | static_cast<uint8_t>(c);
    push(Json(std::bit_cast<double>(value)));
  }
  void text(uint64_t size) { push(Json(std::string(take(size)))); }
  // One character per byte, so that nothing is lost.
  void raw_bytes(uint64_t size) {
    std::string out;
    for (char c : take(size)) {
      auto byte = static_cast<uint8_t>(c);
      if (byte < 0x80) {
        out += c;
      } else {
        out += static_cast<char>(0xc0 | byte >> 6);
        out += static_cast<char>(0x80 | (byte & 0x3f));
      }
    }
    push(Json(std::move(out)));
  }

  void step(uint8_t op) {
    if (!fault_.empty()) return;
    if (const char* what = forbidden(op)) return refuse(fmt::format("{} (opcode 0x{:02x}), which is not read", what, op));
    if (!scalar(op) && !container(op) && !memo(op)) refuse(fmt::format("unknown opcode 0x{:02x}", op));
  }

  bool scalar(uint8_t op) {
    switch (op) {
      case kNone: return push(Json(nullptr)), true;
      case kNewTrue: return push(Json(true)), true;
      case kNewFalse: return push(Json(false)), true;
      case kBinInt: return push(Json(static_cast<int64_t>(number<int32_t>()))), true;
      case kBinInt1: return push(Json(static_cast<int64_t>(number<uint8_t>()))), true;
      case kBinInt2: return push(Json(static_cast<int64_t>(number<uint16_t>()))), true;
      case kInt:
      case kLong: return decimal(line()), true;
      case kLong1: return long_integer(number<uint8_t>()), true;
      case kLong4: return long_integer(number<uint32_t>()), true;
      case kFloat: return push(Json(std::strtod(std::string(line()).c_str(), nullptr))), true;
      case kBinFloat: return big_endian_double(), true;
      case kUnicode: return push(Json(std::string(line()))), true;
      case kBinUnicode: return text(number<uint32_t>()), true;
      case kShortBinUnicode: return text(number<uint8_t>()), true;
      case kBinUnicode8: return text(number<uint64_t>()), true;
      case kBinString:
      case kBinBytes: return raw_bytes(number<uint32_t>()), true;
      case kShortBinString:
      case kShortBinBytes: return raw_bytes(number<uint8_t>()), true;
      case kBinBytes8:
      case kByteArray8: return raw_bytes(number<uint64_t>()), true;
      default: return false;
    }
  }

  bool container(uint8_t op) {
    switch (op) {
      case kMark: return push(Value::kMarker), true;
      case kEmptyDict: return push(Value::kObject), true;
      case kEmptyList:
      case kEmptyTuple:
      case kEmptySet: return push(Value::kArray), true;
      case kTuple1: return tuple(1), true;
      case kTuple2: return tuple(2), true;
      case kTuple3: return tuple(3), true;
      case kTuple:
      case kList:
      case kFrozenSet: return push(Value::kArray, above_mark()), true;
      case kDict: {
        std::vector<size_t> items = above_mark();
        push(Value::kObject);
        return extend(Value::kObject, items), true;
      }
      case kAppend: {
        size_t item = pop();
        return extend(Value::kArray, {item}), true;
      }
      case kAppends:
      case kAddItems: return extend(Value::kArray, above_mark()), true;
      case kSetItem: {
        size_t value = pop(), key = pop();
        return extend(Value::kObject, {key, value}), true;
      }
      case kSetItems: return extend(Value::kObject, above_mark()), true;
      default: return false;
    }
  }

  bool memo(uint8_t op) {
    switch (op) {
      case kProto: return number<uint8_t>() > 5 ? refuse("a protocol above 5") : void(), true;
      case kFrame: return number<uint64_t>(), true;
      case kPut: return put(index_of(line())), true;
      case kBinPut: return put(number<uint8_t>()), true;
      case kLongBinPut: return put(number<uint32_t>()), true;
      case kMemoize: return put(memo_.size()), true;
      case kGet: return get(index_of(line())), true;
      case kBinGet: return get(number<uint8_t>()), true;
      case kLongBinGet: return get(number<uint32_t>()), true;
      case kPop: return pop(), true;
      case kPopMark: return above_mark(), true;
      case kDup:
        if (stack_.empty()) return refuse("a value is missing"), true;
        return again(stack_.back()), true;
      case kStop:
        root_ = pop();
        done_ = true;
        return true;
      default: return false;
    }
  }

  std::string key_of(size_t value) {
    const Value& key = values_[value];
    if (key.kind == Value::kScalar && key.scalar.is_string()) return key.scalar.get<std::string>();
    if (key.kind == Value::kScalar && key.scalar.is_number()) return to_text(key.scalar);
    return refuse("a key that is neither text nor a number"), std::string();
  }

  Json written(size_t index, size_t depth) {
    if (!fault_.empty()) return nullptr;
    if (depth > limits_.depth) return refuse(fmt::format("values more than {} deep", limits_.depth)), nullptr;
    if (++written_ > limits_.values) return refuse(counted("more than {} values", limits_.values)), nullptr;
    const Value& value = values_[index];
    if (value.kind == Value::kScalar) return value.scalar;
    if (value.kind == Value::kArray) {
      Json array = Json::array();
      for (size_t item : value.items) array.push_back(written(item, depth + 1));
      return array;
    }
    if (value.kind == Value::kMarker) return refuse("a mark where a value is due"), nullptr;
    std::map<std::string, Json> last;  // ordered_json looks keys up one by one
    std::vector<std::string> order;
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      std::string key = key_of(value.items[i]);
      if (last.insert_or_assign(key, written(value.items[i + 1], depth + 1)).second) order.push_back(std::move(key));
    }
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    for (std::string& key : order) {
      Json& item = last[key];
      members.Container::emplace_back(std::move(key), std::move(item));
    }
    return object;
  }

  std::string_view bytes_;
  const PickleLimits& limits_;
  size_t at_ = 0, op_at_ = 0, root_ = 0, written_ = 0, added_ = 0;
  bool done_ = false;
  std::string fault_;
  std::vector<Value> values_;
  std::vector<size_t> stack_;
  std::map<uint64_t, size_t> memo_;
};

}  // namespace

Result<Json> parse_pickle(std::string_view bytes, const PickleLimits& limits) { return Reader(bytes, limits).read(); }

}  // namespace phalanx::base
