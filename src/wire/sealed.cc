#include "wire/sealed.h"

#include <cstring>

#include "base/chacha20.h"
#include "base/check.h"
#include "base/sha256.h"
#include "base/try.h"
#include "wire/codec.h"

namespace phalanx::wire {
namespace {

constexpr size_t kHeaderBytes = 5;

std::string nonce_of(uint64_t number) {
  std::string nonce(base::kChaChaNonceBytes, '\0');
  std::memcpy(nonce.data(), &number, sizeof(number));
  return nonce;
}

std::string mac_of(const std::string& key, uint64_t number, std::string_view header_and_bytes) {
  std::string text(sizeof(number), '\0');
  std::memcpy(text.data(), &number, sizeof(number));
  return base::hmac_sha256(key, text.append(header_and_bytes));
}

bool is_type(uint8_t type) { return type >= 1 && type <= static_cast<uint8_t>(RecordType::kVerdict); }

}  // namespace

SealedStream::SealedStream(Side side, std::string_view token, std::string nonce)
    : side_(side), key_(key_for(Purpose::kJoin, token)), nonce_(std::move(nonce)) {
  PHALANX_CHECK(nonce_.size() == kNonceBytes);
}

std::string SealedStream::greeting() const { return side_ == Side::kDialer ? std::string(kJoinMagic) + nonce_ : ""; }

base::Error SealedStream::broken(base::ErrorKind kind, const char* why) {
  broken_ = true;
  buffer_.clear();
  return base::fail(kind, why);
}

void SealedStream::derive(std::string_view dialers, std::string_view listeners) {
  auto key = [&](char who, char what) {
    return base::hmac_sha256(key_, std::string("phalanx seal 1\0", 15) + who + what + std::string(dialers) + std::string(listeners));
  };
  const char mine = side_ == Side::kDialer ? 'd' : 'l', yours = side_ == Side::kDialer ? 'l' : 'd';
  out_ = {key(mine, 'c'), key(mine, 'm'), 0};
  in_ = {key(yours, 'c'), key(yours, 'm'), 0};
  open_ = true;
}

base::Status SealedStream::feed(std::string_view bytes, std::string& reply) {
  if (broken_) return base::fail(base::ErrorKind::kInternal, "the connection is broken");
  buffer_.append(bytes);
  if (open_) return base::ok();
  if (side_ == Side::kDialer) {
    if (buffer_.size() < kNonceBytes + kProofBytes) return base::ok();
    theirs_ = buffer_.substr(0, kNonceBytes);
    if (!proves(std::string_view(buffer_).substr(kNonceBytes, kProofBytes), Side::kListener, key_, nonce_, theirs_))
      return broken(base::ErrorKind::kUnreachable, "the token is another one");
    buffer_.erase(0, kNonceBytes + kProofBytes);
    reply += proof_of(Side::kDialer, key_, nonce_, theirs_);
    derive(nonce_, theirs_);
    return base::ok();
  }
  if (theirs_.empty()) {
    const size_t same = std::min(buffer_.size(), kJoinMagic.size());
    if (std::string_view(buffer_).substr(0, same) != kJoinMagic.substr(0, same))
      return broken(base::ErrorKind::kInternal, "what connects is not phalanx, or another version of it");
    if (buffer_.size() < kJoinMagic.size() + kNonceBytes) return base::ok();
    theirs_ = buffer_.substr(kJoinMagic.size(), kNonceBytes);
    buffer_.erase(0, kJoinMagic.size() + kNonceBytes);
    reply += nonce_ + proof_of(Side::kListener, key_, theirs_, nonce_);
  }
  if (buffer_.size() < kProofBytes) return base::ok();
  if (!proves(std::string_view(buffer_).substr(0, kProofBytes), Side::kDialer, key_, theirs_, nonce_))
    return broken(base::ErrorKind::kUnreachable, "the token is another one");
  buffer_.erase(0, kProofBytes);
  derive(theirs_, nonce_);
  return base::ok();
}

base::Result<std::optional<Record>> SealedStream::next() {
  if (broken_) return base::fail(base::ErrorKind::kInternal, "the connection is broken");
  if (!open_ || buffer_.size() < kHeaderBytes) return std::optional<Record>();
  uint32_t length = 0;
  std::memcpy(&length, buffer_.data(), sizeof(length));
  const auto type = static_cast<uint8_t>(buffer_[4]);
  if (length > kMostRecordBytes || !is_type(type)) return broken(base::ErrorKind::kInternal, "the record is not ours");
  const size_t whole = kHeaderBytes + length + base::kHmacBytes;
  if (buffer_.size() < whole) return std::optional<Record>();
  const std::string_view signed_part = std::string_view(buffer_).substr(0, kHeaderBytes + length);
  if (!base::equal_secrets(std::string_view(buffer_).substr(kHeaderBytes + length, base::kHmacBytes),
                           mac_of(in_.mac, in_.number, signed_part)))
    return broken(base::ErrorKind::kInternal, "a record was changed on its way");
  Record record{static_cast<RecordType>(type), buffer_.substr(kHeaderBytes, length)};
  base::chacha20(record.payload, in_.cipher, nonce_of(in_.number), 0);
  ++in_.number;
  buffer_.erase(0, whole);
  return std::optional<Record>(std::move(record));
}

std::string SealedStream::seal(RecordType type, std::string_view payload) {
  PHALANX_CHECK(open_ && payload.size() <= kMostRecordBytes);
  std::string bytes(payload), record;
  base::chacha20(bytes, out_.cipher, nonce_of(out_.number), 0);
  Encoder encoder(record);
  encoder.u32(static_cast<uint32_t>(payload.size()));
  encoder.u8(static_cast<uint8_t>(type));
  record += bytes;
  record += mac_of(out_.mac, out_.number, record);
  ++out_.number;
  return record;
}

std::string SealedStream::state() const {
  std::string text;
  Encoder encoder(text);
  for (const Direction* one : {&out_, &in_}) {
    encoder.str(one->cipher);
    encoder.str(one->mac);
    encoder.u64(one->number);
  }
  encoder.str(buffer_);
  return text;
}

base::Result<SealedStream> SealedStream::resume(std::string_view state) {
  SealedStream stream;
  Decoder decoder(state);
  bool whole = true;
  for (Direction* one : {&stream.out_, &stream.in_}) {
    one->cipher = decoder.str();
    one->mac = decoder.str();
    one->number = decoder.u64();
    whole = whole && one->cipher.size() == base::kChaChaKeyBytes && one->mac.size() == base::kHmacBytes;
  }
  stream.buffer_ = decoder.str();
  if (!decoder.done() || !whole) return base::fail(base::ErrorKind::kInternal, "that is no state of a sealed stream");
  stream.open_ = true;
  return stream;
}

}  // namespace phalanx::wire
