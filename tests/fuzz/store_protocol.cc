// Four clients write any bytes, torn anywhere, into one store: the parser and the table behind it. Promises checked: every
// answer has the size it was announced with, the table stays within its bound and is empty when everything is taken
// back, and how a stream is torn makes no difference to what is understood.
//
// Input: chunks of one byte (client: 2 bits, size: 6 bits) and that many bytes; size 0 is a client that hangs up.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "store/protocol.h"
#include "store/table.h"

using namespace phalanx;

namespace {

constexpr store::Limits kLimits{.max_key = 40, .max_value = 200, .max_keys = 30, .max_op = 500};
constexpr size_t kTableBytes = 4000;
constexpr size_t kMostAnswer = 5000;  // a client that should be sent more is deaf

std::string text_of(const store::Op& op) {
  std::string out = std::to_string(static_cast<int>(op.code)) + " " + std::to_string(op.number);
  for (auto part : op.parts) out.append(" ").append(part);
  return out;
}

struct Client {
  store::Parser parser{kLimits};
  std::string stream, kept;
  std::vector<std::string> ops;
  bool bad = false;
};

// 8 from a legacy client is understood by whether more bytes follow, so there tearing matters.
bool tearing_matters(const std::vector<std::string>& ops) {
  for (auto& op : ops) {
    if (op.starts_with("8 ") || op.starts_with("9 ")) return true;
  }
  return false;
}

void check_torn_equals_whole(const Client& torn) {
  store::Parser parser(kLimits);
  store::Op op;
  std::vector<std::string> whole;
  std::string_view bytes = torn.stream;
  for (;;) {
    store::Parser::Step step = parser.next(bytes, op);
    if (step.kind != store::Parser::Step::kOp) break;
    PHALANX_CHECK(step.consumed > 0 && step.consumed <= bytes.size() && step.consumed <= kLimits.max_op);
    bytes.remove_prefix(step.consumed);
    whole.push_back(text_of(op));
  }
  if (parser.dialect() == store::Dialect::kLegacy && (tearing_matters(whole) || tearing_matters(torn.ops))) return;
  PHALANX_CHECK(whole == torn.ops);
}

class Fuzz : public store::Outbox {
 public:
  std::string* room(store::ClientId client, size_t bytes) override {
    settle();
    answer_.clear();
    PHALANX_CHECK(client < clients_.size());
    if (bytes > kMostAnswer) return nullptr;
    promised_ = bytes;
    return &answer_;
  }
  void feed(size_t who, std::string_view bytes) {
    Client& client = clients_[who];
    client.stream += bytes;
    client.kept += bytes;
    while (!client.bad) {
      store::Parser::Step step = client.parser.next(client.kept, op_);
      if (step.kind == store::Parser::Step::kMore) return;
      client.bad = step.kind == store::Parser::Step::kBad;
      if (client.bad) return;
      client.ops.push_back(text_of(op_));
      (void)table_.apply(static_cast<store::ClientId>(who), op_, *this);
      client.kept.erase(0, step.consumed);
      settle();
      PHALANX_CHECK(table_.bytes() <= kTableBytes);
    }
  }
  void hang_up(size_t who) {
    check_torn_equals_whole(clients_[who]);
    table_.forget(static_cast<store::ClientId>(who));
    clients_[who] = Client{};
  }
  void finish() {
    for (size_t who = 0; who < clients_.size(); ++who) hang_up(who);
    PHALANX_CHECK(table_.waiting() == 0);
    table_.clear();
    PHALANX_CHECK(table_.bytes() == 0 && table_.keys() == 0);
  }

 private:
  void settle() {
    PHALANX_CHECK(answer_.size() == promised_);
    answer_.clear();
    promised_ = 0;
  }
  std::array<Client, 4> clients_;
  store::Table table_{kTableBytes};
  store::Op op_;
  std::string answer_;
  size_t promised_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Fuzz fuzz;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (!input.empty()) {
    auto head = static_cast<uint8_t>(input.front());
    input.remove_prefix(1);
    size_t bytes = std::min<size_t>(head >> 2, input.size());
    if ((head >> 2) == 0) fuzz.hang_up(head & 3);
    else fuzz.feed(head & 3, input.substr(0, bytes));
    input.remove_prefix(bytes);
  }
  fuzz.finish();
  return 0;
}
