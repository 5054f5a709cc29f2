// Structs to JSON and back, from one list of fields per struct (base/fields.h). Fields may be bool, integers, double, std::string,
// std::optional, std::vector, std::map<std::string, T>, or structs with fields of their own. Reading is tolerant of what is missing (the
// default stays) and of what is unknown (skipped), so that an older recording can be read; a value of the wrong type is an error that names
// its path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fields.h"
#include "base/json.h"

namespace phalanx::base {

class FieldWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) json[name] = write(*value);
    } else {
      json[name] = write(value);
    }
  }

  Json json = Json::object();

 private:
  static Json write(const std::string& value) { return value; }
  template <typename T>
  static Json write(const std::vector<T>& list) {
    Json out = Json::array();
    for (const T& item : list) out.push_back(write(item));
    return out;
  }
  template <typename T>
  static Json write(const std::map<std::string, T>& map) {
    Json out = Json::object();
    for (const auto& [key, item] : map) out[key] = write(item);
    return out;
  }
  template <typename T>
  static Json write(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else {
      FieldWriter inner;
      fields(inner, const_cast<T&>(value));
      return std::move(inner.json);
    }
  }
};

class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return;
    read(*found, value, Place{above_, name});
  }
  const std::string& fault() const { return fault_; }  // empty: all was well

 private:
  // Where a value stands, as a chain of stack frames: its text is needed only for a fault, and a host has thousands of values.
  struct Place {
    const Place* above;
    std::string_view name;  // without data: an element of a list
    size_t index = 0;

    std::string text() const {
      if (!name.data()) return (above ? above->text() : "") + "[" + std::to_string(index) + "]";
      return (above ? above->text() + "." : "") + std::string(name);
    }
  };

  FieldReader(const Json& json, const Place& above) : json_(json), above_(&above) {}

  void wrong(const Place& place, const char* expected) {
    if (fault_.empty()) fault_ = place.text() + " is not " + expected;
  }
  void read(const Json& json, std::string& value, const Place& place) {
    if (!json.is_string()) return wrong(place, "a string");
    value = json.get_ref<const std::string&>();
  }
  template <typename T>
  void read(const Json& json, std::optional<T>& value, const Place& place) {
    value.emplace();
    read(json, *value, place);
  }
  template <typename T>
  void read(const Json& json, std::vector<T>& list, const Place& place) {
    if (!json.is_array()) return wrong(place, "a list");
    list.clear();
    list.reserve(json.size());
    for (size_t i = 0; i < json.size(); ++i) {
      T item{};
      read(json[i], item, Place{&place, {}, i});
      list.push_back(std::move(item));
    }
  }
  template <typename T>
  void read(const Json& json, std::map<std::string, T>& map, const Place& place) {
    if (!json.is_object()) return wrong(place, "an object");
    map.clear();
    for (auto it = json.begin(); it != json.end(); ++it) read(it.value(), map[it.key()], Place{&place, it.key()});
  }
  template <typename T>
  void read(const Json& json, T& value, const Place& place) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return wrong(place, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      if (!json.is_number_integer()) return wrong(place, "an integer");
      value = json.get<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) return wrong(place, "a number");
      value = json.get<T>();
    } else {
      if (!json.is_object()) return wrong(place, "an object");
      FieldReader inner(json, place);
      fields(inner, value);
      if (fault_.empty()) fault_ = inner.fault_;
    }
  }

  const Json& json_;
  const Place* above_ = nullptr;  // of the struct itself; none at the top
  std::string fault_;
};

template <typename T>
Json to_json(const T& value) {
  FieldWriter writer;
  fields(writer, const_cast<T&>(value));
  return std::move(writer.json);
}

// Error kConfig names the first field of a wrong type: "gpus.devices[2].uuid is not a string".
template <typename T>
Result<T> from_json(const Json& json) {
  if (!json.is_object()) return fail(ErrorKind::kConfig, "not a JSON object");
  T value{};
  FieldReader reader(json);
  fields(reader, value);
  if (!reader.fault().empty()) return fail(ErrorKind::kConfig, reader.fault());
  return value;
}

}  // namespace phalanx::base
