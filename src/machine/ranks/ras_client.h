// Asks NCCL's RAS service, which runs in every process of a job (2.24 and later), for the state of all its communicators. Protocol 2:
// lines of text over TCP (NCCL src/ras/client_support.cc, docs/userguide/source/troubleshooting/ras.rst); diagnosis/hang/ras.h reads the
// answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/loop.h"
#include "os/net.h"

namespace phalanx::machine {

struct RasAnswer {
  std::string text;
  bool json = false;  // since 2.28.7; text before
  os::Endpoint endpoint;
};

// Where the processes of this host listen: NCCL_RAS_ADDR of the ranks ("127.0.0.1:28028", "[::1]:5000", "localhost:28028"), "" for NCCL's
// default. Localhost is both families, in the order in which NCCL's getaddrinfo gives them. Error kConfig: a name other than localhost
// (looking it up could take long), or no port.
base::Result<std::vector<os::Endpoint>> ras_endpoints(std::string_view nccl_ras_addr);

class RasClient {
 public:
  static constexpr size_t kMostBytes = 32 << 20;

  struct Options {
    os::milliseconds deadline{8000};  // of everything
    os::milliseconds patience{1000};  // with one process: all of a host listen at one port, and the next attempt meets another one
    int collect_seconds = 5;          // how long RAS waits for ranks that do not answer
  };
  using Done = std::function<void(base::Result<RasAnswer>)>;

  // `done` is called once, from the loop. Endpoints are tried in turn until one answers as RAS does. Errors: kUnreachable, nobody listens
  // there (no job, or one without RAS); kTimeout; kConfig, what listens there is not RAS, or the answer is cut off or too large.
  // The object must live until `done` was called; destroying it earlier ends it in silence.
  RasClient(os::Loop& loop, std::vector<os::Endpoint> endpoints, Options options, Done done);
  ~RasClient();
  RasClient(const RasClient&) = delete;
  RasClient& operator=(const RasClient&) = delete;

 private:
  enum class Step { kConnect, kProtocol, kTimeout, kFormat, kStatus };
  void next_endpoint();
  void on_ready(uint32_t events);
  void on_bytes();
  bool on_line(std::string_view line);
  void on_end();
  void say(std::string_view line);
  void write_out();
  void drop_socket();
  void attempt_failed(base::Error error);
  void no_answer();
  void finish(base::Result<RasAnswer> result);

  os::Loop& loop_;
  std::vector<os::Endpoint> endpoints_;
  Options options_;
  Done done_;
  size_t at_ = 0;  // endpoint
  Step step_ = Step::kConnect;
  os::Fd socket_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0, start_ = 0, patience_ = 0;
  std::string in_, out_;
  bool json_ = true;
  std::optional<base::Error> first_error_;
};

// The same for one who may wait: runs a loop of its own until the answer or the deadline.
base::Result<RasAnswer> ask_ras(const std::vector<os::Endpoint>& endpoints, const RasClient::Options& options);

}  // namespace phalanx::machine
