// What names mean on this machine. Names of /etc/hosts are read there; the others are asked for in children (os/guarded.h): a dead name
// server costs that name only.
//
// The launcher is static, and glibc would load the machine's NSS modules into it; so its own look-up is told to use "files dns"
// only, which are built in. Where the machine knows more (myhostname, sss, mdns) and our answer is none, `getent ahosts` is asked:
// it is the machine's own, and says what Python will hear.
#include <arpa/inet.h>
#include <netdb.h>
#include <nss.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/json_fields.h"
#include "base/text.h"
#include "machine/network/text.h"
#include "machine/probe.h"
#include "machine/tool_output.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/guarded.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostNames = 256, kMostAddresses = 64;
constexpr std::chrono::milliseconds kSlack{200};  // of the deadline, for collecting

void add(std::vector<std::string>& addresses, std::string address) {
  if (addresses.size() < kMostAddresses && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
    addresses.push_back(std::move(address));
}

std::vector<std::string> ask_getent(const std::string& name) {
  std::vector<std::string> addresses;
  std::optional<std::string> text = tool_output("getent", {"ahosts", name}, std::chrono::milliseconds(1000), 64 << 10);
  if (!text) return addresses;
  for (std::string_view line : base::split_lines(*text)) {
    std::vector<std::string_view> words = base::split_words(line);
    if (!words.empty() && is_address(std::string(words[0]))) add(addresses, std::string(words[0]));
  }
  return addresses;
}

Resolved look_up(const std::string& name) {
  Resolved r;
  r.name = name;
  os::Mono begin = os::mono_now();
  ::__nss_configure_lookup("hosts", "files dns");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  for (addrinfo* a = error == 0 ? list : nullptr; a; a = a->ai_next) {
    char text[INET6_ADDRSTRLEN] = "";
    const void* bytes = a->ai_family == AF_INET ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(a->ai_addr)->sin_addr)
                                                : &reinterpret_cast<sockaddr_in6*>(a->ai_addr)->sin6_addr;
    if (::inet_ntop(a->ai_family, bytes, text, sizeof(text))) add(r.addresses, text);
  }
  if (error == 0) ::freeaddrinfo(list);
  if (r.addresses.empty()) r.addresses = ask_getent(name);
  if (r.addresses.empty()) r.error = error == 0 ? "No address associated with hostname" : ::gai_strerror(error);
  r.took_ns = (os::mono_now() - begin).count();
  return r;
}

std::vector<std::string> wanted_names(const ProbeRequest& request) {
  std::vector<std::string> names;
  std::string own;
  if (request.root.empty()) {
    char text[256] = "";
    if (::gethostname(text, sizeof(text) - 1) == 0) own = text;
  } else {
    base::Result<std::string> text = os::read_file(request.root + "/etc/hostname", 4096);
    if (text.ok()) own = base::trim(*text);
  }
  names.push_back(own);
  auto want = [&](const std::string& name) {
    if (names.size() < kMostNames && !name.empty() && name.size() <= 255 && !is_address(name) &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const Peer& peer : request.peers) want(peer.name);
  for (const std::string& name : request.names) want(name);
  return names;
}

}  // namespace

std::vector<Resolved> resolve_names(const ProbeRequest& request) {
  std::vector<std::string> names = wanted_names(request);
  base::Result<std::string> hosts_file = os::read_file(request.root + "/etc/hosts", 1 << 20);
  std::vector<Resolved> all;
  std::vector<os::Guarded> calls;
  std::vector<size_t> asked;  // positions in `all` of what the calls resolve
  for (const std::string& name : names) {
    Resolved r{name, hosts_file_addresses(hosts_file.ok() ? *hosts_file : "", name), "", 0};
    bool known = !r.addresses.empty();  // "files" comes first, and nothing can hang
    if (!known && !request.root.empty()) r.error = "Name or service not known";
    if (!known && request.root.empty()) {
      asked.push_back(all.size());
      calls.push_back({"resolve " + name, [name] { return base::to_text(base::to_json(look_up(name))); }});
    }
    all.push_back(std::move(r));
  }
  if (calls.empty()) return all;
  std::vector<base::Result<std::string>> answers = os::run_guarded(calls, std::max(request.deadline - 2 * kSlack, kSlack));
  for (size_t i = 0; i < asked.size(); ++i) {
    Resolved& r = all[asked[i]];
    if (!answers[i].ok()) {
      r.error = answers[i].error().message;
    } else if (base::Result<base::Json> json = base::parse_json(*answers[i]); json.ok()) {
      base::Result<Resolved> read = base::from_json<Resolved>(*json);
      if (read.ok()) r = *read;
    }
  }
  return all;
}

}  // namespace phalanx::machine
