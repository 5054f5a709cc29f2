// What deployment sends: a header line and this program's bytes, made once and shared by all connections of a launch.
//
// A host with gzip gets the program compressed. Compressing takes about as long as a login, so it starts with the first login that
// may need it, and runs in short turns of the loop while ssh is busy; a host that asks before it is done waits for the rest.
// The result is kept in a file for the user's later launches of the same build: they neither compress nor hash.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/loop.h"

namespace phalanx::hosts {

enum class Encoding { kRaw, kGzip };

// Where the compressed program of a build is kept: under $XDG_CACHE_HOME/phalanx or ~/.cache/phalanx. Empty: there is no such folder
// that is ours alone, or the build has no name.
std::string kept_payload(const std::string& build);

class Payload {
 public:
  // The header line (deploy.h) and the bytes; valid as long as the payload is.
  using Ready = std::function<void(const base::Result<std::string_view>& message)>;

  // program: path of this binary. kept: as from kept_payload(); empty: nothing is kept, and nothing is compressed before a host asks.
  explicit Payload(std::string program, std::string kept = "");
  ~Payload();
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  // A login begins whose far side may ask. Does nothing if a kept file is there.
  void expect(os::Loop& loop);
  // Calls ready at once, or later from the loop. Dropping what is returned cancels the call; null: it has been made.
  [[nodiscard]] std::shared_ptr<Ready> request(os::Loop& loop, Encoding encoding, Ready ready);

 private:
  struct Packing;
  void pack(os::Loop& loop);
  void turn();
  void finish(base::Result<std::string> packed);
  base::Result<std::string_view> raw();
  void load_kept();

  std::string program_, kept_;
  std::string raw_, packed_;  // header and bytes; empty: not made
  std::unique_ptr<Packing> packing_;
  std::vector<std::weak_ptr<Ready>> waiting_;
};

}  // namespace phalanx::hosts
