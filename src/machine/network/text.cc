#include "machine/network/text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostSlaves = 64, kMostNames = 64, kMostLines = 4096, kMostChains = 64;

int64_t number(std::string_view text, int64_t most) {
  base::Result<int64_t> value = base::parse_int(text, 0, most);
  return value.ok() ? *value : 0;
}

// "key: value" → value, if the key is that.
bool field(std::string_view line, std::string_view key, std::string_view& value) {
  line = base::trim(line);
  if (line.substr(0, key.size()) != key || line.size() <= key.size() || line[key.size()] != ':') return false;
  value = base::trim(line.substr(key.size() + 1));
  return true;
}

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find('#')); }

bool same_name(std::string_view a, std::string_view b) { return base::to_lower(a) == base::to_lower(b); }

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

// Bytes of an address: 4, 16, or none.
std::vector<unsigned char> address_bytes(const std::string& text) {
  std::array<unsigned char, 16> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
  return {};
}

}  // namespace

std::vector<BondSlave> parse_bonding(std::string_view text) {
  std::vector<BondSlave> slaves;
  for (std::string_view line : base::split_lines(text)) {
    std::string_view value;
    if (field(line, "Slave Interface", value)) {
      if (slaves.size() == kMostSlaves) break;
      slaves.push_back({std::string(value.substr(0, 64)), false, 0});
    } else if (!slaves.empty() && field(line, "MII Status", value)) {
      slaves.back().up = value == "up";
    } else if (!slaves.empty() && field(line, "Speed", value)) {
      slaves.back().speed_mbps = number(value.substr(0, value.find(' ')), 10'000'000);
    }
  }
  return slaves;
}

std::string hosts_file_loopback(std::string_view text, std::string_view hostname) {
  if (hostname.empty() || same_name(first_label(hostname), "localhost")) return "";
  for (std::string_view line : base::split_lines(text)) {
    std::vector<std::string_view> words = base::split_words(without_comment(line));
    if (words.size() < 2 || !is_loopback_address(std::string(words[0]))) continue;
    bool named = std::any_of(words.begin() + 1, words.end(),
                             [&](std::string_view word) { return same_name(word, hostname) || same_name(word, first_label(hostname)); });
    if (named) return base::join(words, " ").substr(0, 256);
  }
  return "";
}

std::vector<std::string> hosts_file_addresses(std::string_view text, std::string_view name) {
  std::vector<std::string> found;
  for (std::string_view line : base::split_lines(text)) {
    std::vector<std::string_view> words = base::split_words(without_comment(line));
    if (words.size() < 2 || found.size() == kMostNames || !is_address(std::string(words[0]))) continue;
    bool named = std::any_of(words.begin() + 1, words.end(), [&](std::string_view word) { return same_name(word, name); });
    if (named) found.emplace_back(words[0]);
  }
  return found;
}

// "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0\       valid_lft …": the word before "\" is the label, if there is one.
std::vector<AddressLine> parse_ip_addresses(std::string_view text) {
  std::vector<AddressLine> lines;
  for (std::string_view line : base::split_lines(text)) {
    std::vector<std::string_view> words = base::split_words(line.substr(0, line.find('\\')));
    if (words.size() < 4 || (words[2] != "inet" && words[2] != "inet6") || lines.size() == kMostLines) continue;
    AddressLine out;
    out.interface = words[1].substr(0, words[1].find('@')).substr(0, 64);
    out.address.v6 = words[2] == "inet6";
    size_t slash = words[3].find('/');
    out.address.address = words[3].substr(0, slash);
    if (!is_address(out.address.address)) continue;
    int64_t longest = out.address.v6 ? 128 : 32;
    out.address.prefix = slash == std::string_view::npos ? longest : number(words[3].substr(slash + 1), longest);
    std::string_view last = words.back();
    if (!out.address.v6 && last.size() <= 64 && last.substr(0, out.interface.size() + 1) == out.interface + ":") out.address.label = last;
    lines.push_back(std::move(out));
  }
  return lines;
}

std::vector<FirewallChain> parse_nft(std::string_view text) {
  std::vector<FirewallChain> chains;
  FirewallChain current;
  std::string table;
  bool in_chain = false, input = false;
  for (std::string_view raw : base::split_lines(text)) {
    std::string_view line = base::trim(raw);
    std::vector<std::string_view> words = base::split_words(line);
    if (words.empty()) continue;
    if (words[0] == "table" && words.size() >= 3) {
      table = (std::string(words[1]) + " " + std::string(words[2])).substr(0, 128);
    } else if (words[0] == "chain" && words.size() >= 2) {
      current = {"nft", table, std::string(words[1].substr(0, 128)), "accept", 0, 0, 0};
      in_chain = true;
      input = false;
    } else if (in_chain && line == "}") {
      if (input && chains.size() < kMostChains) chains.push_back(current);
      in_chain = false;
    } else if (in_chain && words[0] == "type") {
      input = line.find("hook input") != std::string_view::npos;
      if (line.find("policy drop") != std::string_view::npos) current.policy = "drop";
    } else if (in_chain) {
      ++current.rules;
      current.drops += std::find(words.begin(), words.end(), "drop") != words.end();
      current.rejects += std::find(words.begin(), words.end(), "reject") != words.end();
    }
  }
  return chains;
}

std::vector<FirewallChain> parse_iptables(std::string_view text) {
  FirewallChain chain{"iptables", "filter", "INPUT", "", 0, 0, 0};
  for (std::string_view line : base::split_lines(text)) {
    std::vector<std::string_view> words = base::split_words(line);
    if (words.size() == 3 && words[0] == "-P" && words[1] == "INPUT") chain.policy = base::to_lower(words[2].substr(0, 16));
    if (words.size() < 2 || words[0] != "-A" || words[1] != "INPUT") continue;
    ++chain.rules;
    auto jump = std::find(words.begin(), words.end(), "-j");
    std::string_view verdict = jump != words.end() && jump + 1 != words.end() ? *(jump + 1) : "";
    chain.drops += verdict == "DROP";
    chain.rejects += verdict == "REJECT";
  }
  if (chain.policy.empty()) return {};
  return {chain};
}

bool is_address(const std::string& text) { return !address_bytes(text).empty(); }

bool is_loopback_address(const std::string& address) {
  std::vector<unsigned char> bytes = address_bytes(address);
  if (bytes.size() == 4) return bytes[0] == 127;
  return bytes.size() == 16 && bytes[15] == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](unsigned char b) { return b == 0; });
}

bool is_link_local_address(const std::string& address) {
  std::vector<unsigned char> bytes = address_bytes(address);
  if (bytes.size() == 4) return bytes[0] == 169 && bytes[1] == 254;
  return bytes.size() == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::string network_of(const std::string& address, int64_t prefix) {
  std::vector<unsigned char> bytes = address_bytes(address);
  if (bytes.empty()) return "";
  int64_t bits = static_cast<int64_t>(bytes.size()) * 8;
  prefix = std::clamp<int64_t>(prefix, 0, bits);
  for (int64_t bit = prefix; bit < bits; ++bit) bytes[static_cast<size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text));
  return std::string(text) + "/" + std::to_string(prefix);
}

}  // namespace phalanx::machine
