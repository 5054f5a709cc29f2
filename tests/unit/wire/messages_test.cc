#include "wire/check_messages.h"

#include <gtest/gtest.h>

namespace phalanx::wire {
namespace {

template <typename Message>
Message round_trip(const Message& message, std::string& bytes) {
  bytes.assign(kStreamMagic);
  EXPECT_TRUE(encode(bytes, message).ok());
  static FrameReader reader;
  reader = FrameReader();
  reader.feed(bytes);
  base::Result<std::optional<Frame>> frame = reader.next();
  EXPECT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ((*frame)->type, Message::kType);
  base::Result<Message> back = decode<Message>((*frame)->payload);
  EXPECT_TRUE(back.ok());
  // No prefix of a message is a message.
  std::string_view payload = (*frame)->payload;
  for (size_t n = 0; n < payload.size() && n < 400; ++n) EXPECT_FALSE(decode<Message>(payload.substr(0, n)).ok()) << n;
  EXPECT_FALSE(decode<Message>(std::string(payload) + "x").ok());
  return std::move(back).value();
}

TEST(Messages, PrepareCarriesEveryByte) {
  std::string bytes;
  Prepare m;
  m.run_id = "20261121-073102-a3f9";
  m.key = std::string("\0\1\2\xff", 4);
  m.lease_ms = 6000;
  m.job.directory = "/data/训练";
  m.job.argv = {"python", "-c", "print(\"a b\")\n$HOME 'q'", "", std::string(200'000, 'x'), "\xff\xfe"};
  m.job.set = {{"A", "1"}, {"A", "2"}, {"EMPTY", ""}, {"NEWLINE", "a\nb"}};
  m.job.unset = {"SLURM_*"};
  m.job.path_prefix = "/opt/env/bin";
  m.job.local_rank_macro = true;
  m.boot_id = "0f6b1c1e-5a0c-4b7e-9d51-3c1f3f2a9b10";
  Prepare back = round_trip(m, bytes);
  EXPECT_EQ(back.run_id, m.run_id);
  EXPECT_EQ(back.key, m.key);
  EXPECT_EQ(back.lease_ms, m.lease_ms);
  EXPECT_EQ(back.job.directory, m.job.directory);
  EXPECT_EQ(back.job.argv, m.job.argv);
  EXPECT_EQ(back.job.set, m.job.set);
  EXPECT_EQ(back.job.unset, m.job.unset);
  EXPECT_EQ(back.job.path_prefix, m.job.path_prefix);
  EXPECT_TRUE(back.job.local_rank_macro);
  EXPECT_EQ(back.boot_id, m.boot_id);
}

TEST(Messages, ErrorsTravelWhole) {
  std::string bytes;
  Prepared m;
  m.outcome = {false, base::fail(base::ErrorKind::kUnfit, "no").because("why").with_hint("stat /data").within("checking")};
  Prepared back = round_trip(m, bytes);
  EXPECT_FALSE(back.outcome.ok);
  EXPECT_EQ(back.outcome.error.kind, base::ErrorKind::kUnfit);
  EXPECT_EQ(back.outcome.error.message, "no");
  EXPECT_EQ(back.outcome.error.cause, "why");
  EXPECT_EQ(back.outcome.error.hint, "stat /data");
  EXPECT_EQ(back.outcome.error.context, std::vector<std::string>{"checking"});
}

TEST(Messages, ChecksTravelWhole) {
  std::string bytes;
  Probe probe;
  probe.job.argv = {"python", "train.py"};
  probe.job.set = {{"A", "1"}};
  probe.peers = {{"gpu02", {"10.0.0.2", "fd00::2"}}, {"gpu03", {}}};
  probe.ports = {29500, 65535};
  probe.names = {"master"};
  probe.paths = {"/data"};
  probe.deadline_ms = 1500;
  Probe back = round_trip(probe, bytes);
  EXPECT_EQ(back.peers[0].addresses, probe.peers[0].addresses);
  EXPECT_EQ(back.ports, probe.ports);
  EXPECT_EQ(back.paths, probe.paths);
  EXPECT_EQ(back.deadline_ms, 1500u);
  Probed probed;
  probed.json = "{}";
  EXPECT_EQ(round_trip(probed, bytes).json, "{}");
  EXPECT_EQ(round_trip(Listen{"token", {{"10.0.0.1", 0}, {"fd00::1", 29500}}}, bytes).places[1].port, 29500u);
  Listening listening;
  listening.places = {{{}, 4711}, {{false, base::fail(base::ErrorKind::kUnfit, "taken")}, 0}};
  EXPECT_EQ(round_trip(listening, bytes).places[1].outcome.error.message, "taken");
  Dial dial;
  dial.round = 7;
  dial.echoes = 8;
  dial.payload_bytes = 1 << 18;
  dial.targets = {{3, "10.0.0.3", 4711, true}};
  EXPECT_TRUE(round_trip(dial, bytes).targets[0].master_port);
  EXPECT_EQ(round_trip(dial, bytes).echoes, 8u);
  EXPECT_FALSE(round_trip(probe, bytes).firewall);
  probe.firewall = true;
  EXPECT_TRUE(round_trip(probe, bytes).firewall);
  Hello hello;
  hello.fingerprint = "0123";
  EXPECT_EQ(round_trip(hello, bytes).fingerprint, "0123");
  Dialed dialed;
  dialed.links = {{3, true, LinkOutcome::kStalled, 110, 5, 6, 7, 9, 8, "10.0.0.1"}};
  Dialed dialed_back = round_trip(dialed, bytes);
  EXPECT_EQ(dialed_back.links[0].outcome, LinkOutcome::kStalled);
  EXPECT_EQ(dialed_back.links[0].local_address, "10.0.0.1");
  EXPECT_EQ(dialed_back.links[0].bytes_per_second, 7);
}

TEST(Messages, AllOthers) {
  std::string bytes;
  Hello hello;
  hello.build = "abc";
  hello.addresses = {{"eth0", "10.0.0.1"}, {"ib0", "fd00::1"}};
  hello.now_ns = -5;
  EXPECT_EQ(round_trip(hello, bytes).addresses[1].address, "fd00::1");
  Start start;
  start.store_address = "10.0.0.1";
  start.store_port = 65535;
  start.defaults = {{"GLOO_SOCKET_IFNAME", "eth0"}};
  start.ranks = {{0, 0, {{"RANK", "0"}}}, {1, 1, {{"RANK", "1"}}}};
  Start start_back = round_trip(start, bytes);
  ASSERT_EQ(start_back.ranks.size(), 2u);
  EXPECT_EQ(start_back.ranks[1].set[0].second, "1");
  Output output;
  output.rank = 3;
  output.stream = Stream::kStderr;
  output.kind = OutputKind::kProgress;
  output.at_ns = 42;
  output.data = "50%|#####     |";
  Output output_back = round_trip(output, bytes);
  EXPECT_EQ(output_back.data, "50%|#####     |");
  EXPECT_EQ(output_back.stream, Stream::kStderr);
  EXPECT_EQ(output_back.kind, OutputKind::kProgress);
  Exited exited;
  exited.rank = 9;
  exited.status = 0x8b;
  exited.stopped_by_us = 15;
  exited.signs = {{ExitSign::Kind::kCgroupKill, "cgroup: /job"}, {ExitSign::Kind::kOther, ""}};
  EXPECT_EQ(round_trip(exited, bytes).stopped_by_us, 15);
  EXPECT_EQ(round_trip(exited, bytes).signs[0].kind, ExitSign::Kind::kCgroupKill);
  EXPECT_EQ(round_trip(exited, bytes).signs[0].text, "cgroup: /job");
  EXPECT_EQ(round_trip(Reach{"::1", 1, 3000}, bytes).timeout_ms, 3000u);
  EXPECT_EQ(round_trip(Finished{3, 1}, bytes).left, 1u);
  round_trip(Finish{}, bytes);
}

// Every byte of a message that holds an enum is set to every value in turn: what is decoded has only values that the enum has.
template <typename M, typename Known>
void try_every_value(const M& message, Known known) {
  std::string bytes;
  ASSERT_TRUE(encode(bytes, message).ok());
  const std::string payload = bytes.substr(kFrameHeaderBytes);
  size_t refused = 0;
  for (size_t at = 0; at < payload.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string changed = payload;
      changed[at] = static_cast<char>(value);
      base::Result<M> read = decode<M>(changed);
      if (!read.ok()) ++refused;
      else EXPECT_TRUE(known(*read)) << at << " " << value;
    }
  EXPECT_GT(refused, 200u);
}

TEST(Messages, AnUnknownValueOfAnEnumIsRefused) {
  Output output;
  output.data = "x\n";
  try_every_value(output, [](const Output& m) {
    return (m.stream == Stream::kStdout || m.stream == Stream::kStderr) &&
           (m.kind == OutputKind::kLines || m.kind == OutputKind::kProgress);
  });
  Exited exited;
  exited.signs = {{ExitSign::Kind::kOther, "x"}};
  try_every_value(exited, [](const Exited& m) {
    for (const ExitSign& sign : m.signs)
      if (sign.kind < ExitSign::Kind::kCgroupKill || sign.kind > ExitSign::Kind::kOther) return false;
    return true;
  });
  Prepared prepared;
  prepared.outcome = {false, base::fail(base::ErrorKind::kUnfit, "no")};
  try_every_value(prepared, [](const Prepared& m) { return m.outcome.error.kind <= base::ErrorKind::kInternal; });
  Dialed dialed;
  dialed.links = {{3, true, LinkOutcome::kStalled, 110, 5, 6, 7, 9, 8, "10.0.0.1"}};
  try_every_value(dialed, [](const Dialed& m) { return m.links.empty() || m.links[0].outcome <= LinkOutcome::kError; });
}

TEST(Messages, ACountThatCannotFitIsRefusedWithoutAllocating) {
  std::string payload;
  payload.append("\1\0\0\0a", 5);         // store_address "a"
  payload.append("\0\0\0\0", 4);          // store_port
  payload.append("\xff\xff\xff\xff", 4);  // four billion defaults
  EXPECT_FALSE(decode<Start>(payload).ok());
}

}  // namespace
}  // namespace phalanx::wire
