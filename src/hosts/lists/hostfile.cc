// Hostfiles, line by line (hosts/lists/host_list.h).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "hosts/connect/host_collector.h"
#include "hosts/lists/host_list.h"
#include "hosts/lists/host_word.h"
#include "os/files.h"

namespace phalanx::hosts {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

// Keys of a line. Open MPI writes slots, max_slots (or max-slots) and user; port is ours.
enum class Key { kSlots, kMaxSlots, kPort, kUser };
struct KeyName {
  std::string_view name;
  Key key;
};
constexpr KeyName kKeys[] = {
    {"slots", Key::kSlots}, {"max_slots", Key::kMaxSlots}, {"max-slots", Key::kMaxSlots}, {"port", Key::kPort}, {"user", Key::kUser}};

// Reads one line into the hosts that the lines before it have gathered.
class LineReader {
 public:
  LineReader(std::string_view line, std::string_view place, HostCollector& hosts) : line_(line), place_(place), hosts_(hosts) {}

  base::Status read() {
    std::vector<std::string_view> fields = base::split_words(without_comment());
    if (fields.empty()) return base::ok();
    HostWord word;
    WordFault fault;
    if (!parse_host_word(fields[0], kMostHosts, word, fault) && !bare_ipv6(fields[0], word)) return hinted_host(fields, fault);
    if (!word.rest.empty()) {
      std::string_view number = word.rest.substr(1);
      return wrong(at(word.rest), fmt::format("{} after the name is ambiguous: slots or a port", base::quote(word.rest)),
                   fmt::format("write {0} slots={1} or {0} port={1}", name_of(fields[0], word), base::printable(number)));
    }
    HostSpec pattern;
    pattern.user = word.user;
    pattern.source = place_;
    for (size_t i = 1; i < fields.size(); ++i) TRY(read_field(fields, i, pattern));
    if (max_slots_ && pattern.slots && *max_slots_ < *pattern.slots)
      return wrong(at(fields[0]), fmt::format("slots={} is more than max_slots={}", *pattern.slots, *max_slots_), "");
    if (!pattern.slots) pattern.slots = max_slots_;  // as Open MPI reads a lone max_slots
    if (auto problem = hosts_.add(pattern, word.addresses)) return wrong(at(fields[0]), problem->message, problem->hint);
    return base::ok();
  }

 private:
  std::string_view without_comment() const {
    for (size_t i = 0; i < line_.size(); ++i)
      if (line_[i] == '#' && (i == 0 || base::is_blank(line_[i - 1]))) return line_.substr(0, i);
    return line_;
  }

  size_t at(std::string_view part) const { return static_cast<size_t>(part.data() - line_.data()); }

  Error wrong(size_t byte, std::string message, std::string hint) const {
    return base::fail(ErrorKind::kConfig, fmt::format("{}:{}: {}", place_, character_number(line_, byte), message))
        .with_hint(std::move(hint));
  }

  // Without slots after the name there is nothing a bare IPv6 address could be mistaken for.
  static bool bare_ipv6(std::string_view field, HostWord& word) {
    size_t sign = field.rfind('@');
    std::string_view address = sign == std::string_view::npos ? field : field.substr(sign + 1);
    if (!is_ipv6(address)) return false;
    word.addresses = {std::string(address)};
    word.rest = {};
    return true;
  }

  static std::string name_of(std::string_view field, const HostWord& word) {
    return base::printable(field.substr(0, field.size() - word.rest.size()));
  }

  Error hinted_host(const std::vector<std::string_view>& fields, const WordFault& fault) const {
    std::string hint = fault.hint;
    if (fields[0].find('=') != std::string_view::npos) hint = "write the host name first: <host> slots=<number>";
    if (fields[0].find(',') != std::string_view::npos && fields[0].find('[') == std::string_view::npos) hint = "write one host per line";
    if (fields[0].find('#') != std::string_view::npos) hint = "put a space before a comment";
    return wrong(at(fields[0]) + fault.at, fault.message, std::move(hint));
  }

  base::Status read_field(const std::vector<std::string_view>& fields, size_t index, HostSpec& pattern) {
    std::string_view field = fields[index];
    size_t equals = field.find('=');
    std::string_view name = field.substr(0, equals);
    auto known = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const KeyName& key) { return key.name == name; });
    if (equals == std::string_view::npos) return no_equals(fields, index, known != std::end(kKeys));
    if (known == std::end(kKeys)) return unknown_key(field, name);
    std::string_view value = field.substr(equals + 1);
    if (value.empty())
      return wrong(at(field), fmt::format("{}= has no value", name), fmt::format("write {}=N without spaces around '='", name));
    if (std::find(seen_.begin(), seen_.end(), known->key) != seen_.end())
      return wrong(at(field), fmt::format("{} is given twice", name), "keep one of them");
    seen_.push_back(known->key);
    return set(known->key, name, value, pattern);
  }

  base::Status set(Key key, std::string_view name, std::string_view value, HostSpec& pattern) {
    if (key == Key::kUser) {
      HostWord word;
      WordFault fault;
      std::string probe = std::string(value) + "@h";
      if (!parse_host_word(probe, 1, word, fault)) return wrong(at(value) + fault.at, fault.message, fault.hint);
      if (!pattern.user.empty())
        return wrong(at(value), fmt::format("the user is given twice: {} and {}", pattern.user, value), "keep one of them");
      pattern.user = value;
      return base::ok();
    }
    auto number = base::parse_int(value, 1, key == Key::kPort ? 65'535 : kMostSlots, ErrorKind::kConfig);
    if (!number.ok()) {
      bool comment = value.find('#') != std::string_view::npos;
      bool none = key == Key::kSlots && value == "0";
      return wrong(at(value), fmt::format("{}: {}", name, number.error().message),
                   comment ? "put a space before a comment"
                   : none  ? "to leave a host out, put '#' in front of its line"
                           : "");
    }
    int chosen = static_cast<int>(*number);
    if (key == Key::kPort) pattern.port = chosen;
    else if (key == Key::kSlots) pattern.slots = chosen;
    else max_slots_ = chosen;
    return base::ok();
  }

  Error no_equals(const std::vector<std::string_view>& fields, size_t index, bool known) const {
    std::string_view field = fields[index];
    if (known && index + 1 < fields.size() && fields[index + 1].starts_with("=")) {
      std::string_view value = fields[index + 1].size() > 1 ? fields[index + 1].substr(1)
                               : index + 2 < fields.size()  ? fields[index + 2]
                                                            : "N";
      return wrong(at(field), fmt::format("blanks stand around the '=' of {}", field),
                   fmt::format("write {}={}", field, base::printable(value)));
    }
    std::string hint = "write one host per line, followed by slots=N, max_slots=N, port=N or user=NAME";
    if (known || base::parse_int(field, 0, INT64_MAX).ok()) hint = fmt::format("write slots={}", known ? "N" : field);
    return wrong(at(field), fmt::format("{} is not a key=value", base::quote(field)), std::move(hint));
  }

  Error unknown_key(std::string_view field, std::string_view name) const {
    std::vector<std::string> names;
    for (const KeyName& key : kKeys) names.emplace_back(key.name);
    auto near = base::closest(base::to_lower(name), names);
    bool gpus = name == "gpus" || name == "gpu" || name == "ngpus" || name == "num_gpus" || name == "np";
    return wrong(at(field), fmt::format("unknown key {}", base::quote(name)),
                 near   ? fmt::format("did you mean {}?", *near)
                 : gpus ? "write slots=N"
                        : "known keys: slots, max_slots, port, user");
  }

  std::string_view line_;
  std::string place_;
  HostCollector& hosts_;
  std::optional<int> max_slots_;
  std::vector<Key> seen_;
};

Error no_hosts(std::string_view shown) {
  return base::fail(ErrorKind::kConfig, fmt::format("{} contains no hosts", shown))
      .with_hint("write one host per line: <host> slots=<number>");
}

}  // namespace

Result<HostList> parse_hostfile(std::string_view text, std::string_view path) {
  std::string shown = base::printable(path, 300);
  if (text.size() > kLargestHostfile)
    return base::fail(ErrorKind::kConfig, fmt::format("{} is larger than the limit of {}", shown, base::format_bytes(kLargestHostfile)));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark, as editors on Windows write it
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return base::fail(ErrorKind::kConfig, fmt::format("{} is encoded in UTF-16", shown)).with_hint("save it as UTF-8");
  HostCollector hosts;
  size_t number = 0;
  for (std::string_view line : base::split_lines(text)) {
    std::string place = fmt::format("{}:{}", shown, ++number);
    if (line.size() > kLongestHostLine)
      return base::fail(ErrorKind::kConfig, fmt::format("{}: the line is longer than {}", place, base::format_bytes(kLongestHostLine)));
    TRY(LineReader(line, place, hosts).read());
  }
  if (hosts.size() == 0) return no_hosts(shown);
  return hosts.finish();
}

Result<HostList> read_hostfile(const std::string& path) {
  auto text = os::read_file(path, kLargestHostfile);
  if (text.ok()) return parse_hostfile(*text, path);
  Error error = std::move(text).error();
  error.kind = ErrorKind::kConfig;
  error.context.push_back("reading the hostfile");
  if (error.hint.empty()) error.hint = "name an existing file, or give the hosts with -H <host>,<host>";
  return error;
}

}  // namespace phalanx::hosts
