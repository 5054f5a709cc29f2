#include "machine/ranks/ras_client.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::machine {
namespace {

constexpr size_t kLongestReply = 4096;  // to a command; the status is longer
constexpr uint16_t kPort = 28028;

// The whole answer has come: JSON with its last brace; text with the heading of its last section.
bool is_whole(const std::string& text, bool json) {
  std::string_view end = base::trim(text);
  return json ? end.starts_with('{') && end.ends_with('}') : end.find("\nWarnings\n========") != std::string_view::npos;
}

}  // namespace

base::Result<std::vector<os::Endpoint>> ras_endpoints(std::string_view nccl_ras_addr) {
  std::string_view text = base::trim(nccl_ras_addr);
  if (text.empty()) return std::vector<os::Endpoint>{{"::1", kPort}, {"127.0.0.1", kPort}};
  size_t colon = text.rfind(':');
  auto wrong = [&](std::string_view why) {
    return base::fail(base::ErrorKind::kConfig, fmt::format("NCCL_RAS_ADDR={}: {}", base::quote(text), why));
  };
  if (colon == std::string_view::npos) return wrong("no port");
  base::Result<int64_t> port = base::parse_int(text.substr(colon + 1), 1, 65535);
  if (!port.ok()) return wrong("no port");
  auto number = static_cast<uint16_t>(*port);
  std::string_view host = text.substr(0, colon);
  if (host == "localhost") return std::vector<os::Endpoint>{{"::1", number}, {"127.0.0.1", number}};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_not_of("0123456789abcdefABCDEF.:") != std::string_view::npos) return wrong("not a numeric address");
  return std::vector<os::Endpoint>{{std::string(host), number}};
}

RasClient::RasClient(os::Loop& loop, std::vector<os::Endpoint> endpoints, Options options, Done done)
    : loop_(loop), endpoints_(std::move(endpoints)), options_(options), done_(std::move(done)) {
  timer_ = loop_.after(options_.deadline, [this] {
    timer_ = 0;
    finish(base::fail(base::ErrorKind::kTimeout, fmt::format("NCCL's RAS at {} did not answer within {}",
                                                             at_ < endpoints_.size() ? endpoints_[at_].str() : "no address",
                                                             base::format_duration(options_.deadline))));
  });
  start_ = loop_.after(os::nanoseconds(0), [this] {  // not here: the first attempt may fail at once, and `done` is for the loop to call
    start_ = 0;
    next_endpoint();
  });
}

RasClient::~RasClient() {
  drop_socket();
  for (os::TimerId id : {timer_, start_})
    if (id) loop_.cancel(id);
}

void RasClient::drop_socket() {
  if (watch_) loop_.unwatch(watch_);
  if (patience_) loop_.cancel(patience_);
  watch_ = patience_ = 0;
  socket_.reset();
}

void RasClient::finish(base::Result<RasAnswer> result) {
  drop_socket();
  if (timer_) loop_.cancel(timer_);
  timer_ = 0;
  if (Done done = std::move(done_)) {
    done_ = nullptr;
    done(std::move(result));
  }
}

void RasClient::attempt_failed(base::Error error) {
  drop_socket();
  // A service that answered wrongly says more than an address at which nobody listens.
  if (!first_error_ || first_error_->kind == base::ErrorKind::kUnreachable) first_error_ = std::move(error);
  ++at_;
  next_endpoint();
}

// The process that took the connection is stopped, or its RAS thread is: another one may take the next.
void RasClient::no_answer() {
  patience_ = 0;
  drop_socket();
  at_ = (at_ + 1) % endpoints_.size();
  next_endpoint();
}

void RasClient::next_endpoint() {
  if (at_ >= endpoints_.size()) {
    if (first_error_) return finish(std::move(*first_error_));
    return finish(base::fail(base::ErrorKind::kConfig, "no address of NCCL's RAS"));
  }
  step_ = Step::kConnect;
  in_.clear();
  out_.clear();
  os::Attempt attempt = os::connect_tcp_traced(endpoints_[at_]);
  if (!attempt.fd.valid())
    return attempt_failed(base::fail(base::ErrorKind::kUnreachable, fmt::format("nothing listens at {}", endpoints_[at_].str()))
                              .because(std::strerror(attempt.error_number)));
  socket_ = std::move(attempt.fd);
  base::Result<os::WatchId> watch = loop_.watch(socket_.get(), EPOLLOUT, [this](uint32_t events) { on_ready(events); });
  if (!watch.ok()) return finish(watch.error());
  watch_ = *watch;
}

void RasClient::say(std::string_view line) {
  out_ += line;
  write_out();
}

void RasClient::write_out() {
  while (!out_.empty()) {
    os::IoStep step = os::write_step(socket_.get(), out_.data(), out_.size());
    if (step.kind != os::IoStep::kBytes) break;
    out_.erase(0, step.bytes);
  }
  loop_.rewatch(watch_, out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void RasClient::on_ready(uint32_t events) {
  if (step_ == Step::kConnect) {
    if (int error = os::connect_outcome(socket_.get()); error != 0)
      return attempt_failed(base::fail(base::ErrorKind::kUnreachable, fmt::format("nothing listens at {}", endpoints_[at_].str()))
                                .because(std::strerror(error)));
    step_ = Step::kProtocol;
    patience_ = loop_.after(options_.patience, [this] { no_answer(); });
    return say("CLIENT PROTOCOL 2\n");
  }
  if (events & EPOLLOUT) write_out();
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_bytes();
}

void RasClient::on_bytes() {
  char buffer[1 << 16];
  for (;;) {
    os::IoStep step = os::read_step(socket_.get(), buffer, sizeof buffer);
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes) return on_end();
    in_.append(buffer, step.bytes);
    while (step_ != Step::kStatus) {
      size_t end = in_.find('\n');
      if (end == std::string::npos && in_.size() <= kLongestReply) break;
      std::string line = in_.substr(0, end);
      if (end == std::string::npos || !on_line(base::trim(line)))
        return attempt_failed(
            base::fail(base::ErrorKind::kConfig, fmt::format("what listens at {} is not NCCL's RAS", endpoints_[at_].str()))
                .because(fmt::format("it said {}", base::quote(base::trim(std::string_view(line).substr(0, 80))))));
      in_.erase(0, end + 1);
    }
    if (in_.size() > kMostBytes)
      return finish(
          base::fail(base::ErrorKind::kConfig, fmt::format("the answer of NCCL's RAS is larger than {}", base::format_bytes(kMostBytes))));
  }
}

// A reply to a command.
bool RasClient::on_line(std::string_view line) {
  std::string lower = base::to_lower(line);
  switch (step_) {
    case Step::kProtocol:
      if (!lower.starts_with("server protocol ")) return false;
      step_ = Step::kTimeout;
      say(fmt::format("TIMEOUT {}\n", options_.collect_seconds));
      return true;
    case Step::kTimeout:
      if (lower != "ok") return false;
      step_ = Step::kFormat;
      say("SET FORMAT json\n");
      return true;
    case Step::kFormat:
      if (lower != "ok" && !lower.starts_with("error:")) return false;
      loop_.cancel(patience_);
      patience_ = 0;
      json_ = lower == "ok";  // before 2.28.7 the command is not known, and the answer is text
      step_ = Step::kStatus;
      say("VERBOSE STATUS\n");
      return true;
    default: return false;
  }
}

// RAS closes the connection when all was said.
void RasClient::on_end() {
  if (step_ != Step::kStatus)
    return attempt_failed(base::fail(base::ErrorKind::kConfig,
                                     fmt::format("{} closed the connection before it answered as NCCL's RAS does", endpoints_[at_].str())));
  if (!is_whole(in_, json_))
    return finish(base::fail(base::ErrorKind::kConfig, "the answer of NCCL's RAS is cut off")
                      .because(fmt::format("the connection ended after {}", base::format_bytes(in_.size()))));
  finish(RasAnswer{std::move(in_), json_, endpoints_[at_]});
}

base::Result<RasAnswer> ask_ras(const std::vector<os::Endpoint>& endpoints, const RasClient::Options& options) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  std::optional<base::Result<RasAnswer>> result;
  RasClient client(*loop, endpoints, options, [&](base::Result<RasAnswer> answer) {
    result = std::move(answer);
    loop->stop();
  });
  loop->run();
  return std::move(*result);
}

}  // namespace phalanx::machine
