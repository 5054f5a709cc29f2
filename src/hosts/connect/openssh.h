// OpenSSH, spawned: the user's ~/.ssh/config, agent, ProxyJump, known_hosts and certificates count as they are. Added:
// BatchMode (never asks), deadlines, no forwardings, and one shared connection per host that is kept for five minutes
// (ControlMaster under a private 0700 folder), so the next run pays no key exchange, and the one after it not even the start of an ssh
// (ssh_session.h).
#pragma once

#include "hosts/connect/transport.h"

namespace phalanx::hosts {

struct OpensshOptions {
  std::string program = "ssh";
  std::string build;               // of this binary, for the deploy script
  std::vector<std::string> extra;  // "Name=Value", before ours: ssh takes the first it sees
  int connect_timeout_s = 10;
  std::string control_folder;  // short, 0700; empty: no shared connections
  std::string place;           // network_place(): a connection is shared within one place only
};

class OpensshTransport : public Transport {
 public:
  explicit OpensshTransport(OpensshOptions options) : options_(std::move(options)) {}
  Launch launch(const Target& target, int attempt) const override;
  base::Error explain(const Target& target, const Death& death) const override;
  bool may_retry(const Death& death) const override;
  void forget(const Target& target) const override;
  std::string try_by_hand(const Target& target) const override { return "ssh -v " + target.destination + " true"; }

 private:
  std::string control_socket(const Target& target) const;
  OpensshOptions options_;
};

// Of the name of a socket in that folder: so many hex digits.
inline constexpr size_t kSocketNameBytes = 20;
// A folder for control sockets: owned by us, 0700, and short enough for a socket path (108 bytes with ssh's suffix).
// Empty if none of $XDG_RUNTIME_DIR/phalanx, $XDG_CACHE_HOME/phalanx/ssh (default ~/.cache), /tmp/phalanx-ssh-<uid> will do.
std::string control_folder();

}  // namespace phalanx::hosts
