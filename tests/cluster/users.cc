#include "users.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/try.h"
#include "state.h"

namespace phalanx::testbed {

namespace {

// A file of /etc becomes the host's own, with these lines at its end.
base::Status extend_etc(const std::string& name, const std::string& lines, int mode) {
  std::string own = "/run/testbed/" + name, target = "/etc/" + name;
  TRY_ASSIGN(std::string text, read_text(target));
  TRY(write_text(own, text + lines, mode));
  if (::mount(own.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) return base::system_error("mount at", target);
  return base::ok();
}

base::Status give(const User& user, const std::string& path) {
  if (::lchown(path.c_str(), user.id, user.id) != 0) return base::system_error("chown", path);
  return base::ok();
}

base::Status make_home(const User& user, const UserKeys& keys) {
  std::string home = home_of(user.name), ssh = home + "/.ssh";
  TRY(make_folder(home, 0700));
  TRY(give(user, home));
  if (!user.has_a_key) return base::ok();
  TRY(make_folder(ssh, 0700));
  TRY(give(user, ssh));
  for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"id_ed25519", keys.client_key},
                                   {"id_ed25519.pub", keys.client_public},
                                   {"known_hosts", keys.known_hosts},
                                   {"authorized_keys", keys.client_public}}) {
    TRY(write_text(ssh + "/" + name, text, 0600));
    TRY(give(user, ssh + "/" + name));
  }
  return base::ok();
}

}  // namespace

std::string home_of(const std::string& user) { return "/run/home/" + user; }

base::Status make_users(const UserKeys& keys) {
  std::string passwd, group, shadow;
  for (const User& user : kUsers) {
    passwd += fmt::format("{0}:x:{1}:{1}::{2}:/bin/bash\n", user.name, user.id, home_of(user.name));
    group += fmt::format("{}:x:{}:\n", user.name, user.id);
    shadow += fmt::format("{}:*:20000:0:99999:7:::\n", user.name);
  }
  TRY(extend_etc("passwd", passwd, 0644));
  TRY(extend_etc("group", group, 0644));
  TRY(extend_etc("shadow", shadow, 0600));
  TRY(make_folder("/run/home"));
  for (const User& user : kUsers) TRY(make_home(user, keys));
  return base::ok();
}

}  // namespace phalanx::testbed
