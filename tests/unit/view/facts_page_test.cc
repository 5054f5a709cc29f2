// docs/formats/facts.md names every field of machine::Facts, from the lists of fields themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "machine/facts.h"

namespace phalanx::view {
namespace {

constexpr const char* kHead =
    "# Facts: what a probe saw of one machine\n"
    "\n"
    "`facts` of a host in [check-json.md](check-json.md); the agent sends the same JSON to the launcher. Facts contain no judgement. An\n"
    "empty string or list, 0 or an absent field means \"not known\", never \"no\". The value of a variable or an argument whose name\n"
    "contains KEY, TOKEN, SECRET, PASS, PWD, CREDENTIAL, AUTH, COOKIE, SIGNATURE or WEBHOOK is never collected, and the login in a URL is\n"
    "removed from every value. The run directory keeps no value of any variable ([run-directory.md](run-directory.md)).\n"
    "\n"
    "Units are in the names: `_bytes`; `_ns`, `_s` (durations; `wall_ns` is since 1970); `_mbps`, `_gbps` (10⁶ and 10⁹ bit/s); `_mw`\n"
    "(milliwatts); `_mhz`; `_c` (degrees Celsius); `_percent`. In limits −1 means \"unlimited\". `[]` is a list, `{}` a map from names. "
    "The\n"
    "headers of `src/machine/` whose names end in `facts.h` document each field.\n"
    "\n"
    "| object | fields |\n"
    "|---|---|\n";

// Visits a struct's fields: a line for the struct, then those of the structs inside it.
class Lister {
 public:
  explicit Lister(std::string path) : path_(std::move(path)) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    names_ += fmt::format("{}`{}`", names_.empty() ? "" : ", ", name);
    inside(path_.empty() ? name : path_ + "." + name, value);
  }
  std::string text() const { return fmt::format("| {} | {} |\n", path_.empty() ? "the whole" : "`" + path_ + "`", names_) + more_; }

 private:
  void inside(const std::string&, std::string&) {}
  template <typename T>
  void inside(const std::string& path, std::vector<T>&) {
    T item{};
    inside(path + "[]", item);
  }
  template <typename T>
  void inside(const std::string& path, std::optional<T>&) {
    T item{};
    inside(path, item);
  }
  template <typename T>
  void inside(const std::string& path, std::map<std::string, T>&) {
    T item{};
    inside(path + "{}", item);
  }
  template <typename T>
  void inside(const std::string& path, T& value) {
    if constexpr (!std::is_arithmetic_v<T>) {
      Lister inner(path);
      fields(inner, value);
      more_ += inner.text();
    }
  }

  std::string path_, names_, more_;
};

TEST(FactsPage, NamesEveryField) {
  machine::Facts facts;
  Lister all("");
  fields(all, facts);
  std::string page = kHead + all.text();
  std::string data = PHALANX_TEST_DATA;
  std::string path = data.substr(0, data.rfind("/tests/data")) + "/docs/formats/facts.md";
  if (const char* write = std::getenv("PHALANX_GOLDEN"); write && std::string_view(write) == "write") std::ofstream(path) << page;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), page) << "run: PHALANX_GOLDEN=write build/dev/tests/view_test --gtest_filter='FactsPage*'";
}

}  // namespace
}  // namespace phalanx::view
