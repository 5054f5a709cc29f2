// The people of a cluster besides root. Each has an account on every host, and only there: the accounts are lines in copies of /etc/passwd,
// /etc/group and /etc/shadow that are bind-mounted in the mount namespaces of the hosts. The machine itself knows neither the names nor
// the ids.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace phalanx::testbed {

struct User {
  const char* name;
  uid_t id;        // of the user and of the user's only group
  bool has_a_key;  // to log in to every host, from every host
};

// `worker` runs jobs. `stranger` has a shell on each host, as another user of a shared machine does.
inline constexpr User kUsers[] = {{"worker", 61'301, true}, {"stranger", 61'302, false}};

std::string home_of(const std::string& user);  // of one of these, 0700, on a file system of the host's own

struct UserKeys {
  std::string client_key, client_public, known_hosts;
};

// In the mount namespace of a host: the accounts, their homes, and in them what ssh needs.
base::Status make_users(const UserKeys& keys);

}  // namespace phalanx::testbed
