#include "wire/frame.h"

#include <cstring>

#include <fmt/format.h>

#include "base/counted.h"

namespace phalanx::wire {

using base::ErrorKind;
using base::fail;

base::Status put_frame(std::string& out, FrameType type, std::string_view payload) {
  if (payload.size() > kMaxFrameBytes)
    return fail(ErrorKind::kInternal,
                base::counted("a message of {} bytes is larger than the limit of {}", payload.size(), kMaxFrameBytes));
  char header[kFrameHeaderBytes];
  uint32_t size = static_cast<uint32_t>(payload.size());
  std::memcpy(header, &size, 4);
  header[4] = static_cast<char>(type);
  out.append(header, sizeof(header));
  out.append(payload);
  return base::ok();
}

void FrameReader::feed(std::string_view bytes) {
  if (position_ > 0 && (position_ == buffer_.size() || position_ > (256 << 10))) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  buffer_.append(bytes);
}

base::Status FrameReader::find_magic() {
  size_t at = buffer_.find(kStreamMagic);
  if (at != std::string::npos) {
    noise_ = buffer_.substr(0, at);
    position_ = at + kStreamMagic.size();
    started_ = true;
    return base::ok();
  }
  if (buffer_.size() > kMaxNoiseBytes + kStreamMagic.size()) {
    noise_ = buffer_.substr(0, 512);
    return fail(ErrorKind::kInternal, base::counted("no Phalanx stream in the first {} bytes", kMaxNoiseBytes));
  }
  size_t zero = buffer_.find('\0');
  if (zero != std::string::npos && buffer_.size() - zero >= kStreamMagic.size()) {
    noise_ = buffer_.substr(0, 512);
    return fail(ErrorKind::kInternal, "the other side uses another version of the Phalanx protocol");
  }
  return base::ok();
}

base::Result<std::optional<Frame>> FrameReader::next() {
  if (broken_) return fail(ErrorKind::kInternal, "the stream is broken");
  if (!started_) {
    base::Status found = find_magic();
    if (!found.ok()) {
      broken_ = true;
      return std::move(found).error();
    }
    if (!started_) return std::optional<Frame>();
  }
  if (buffered() < kFrameHeaderBytes) return std::optional<Frame>();
  uint32_t size;
  std::memcpy(&size, buffer_.data() + position_, 4);
  if (size > most_bytes_) {
    broken_ = true;
    return fail(ErrorKind::kInternal, base::counted("a frame of {} bytes is larger than the limit of {}", size, most_bytes_));
  }
  if (buffered() < kFrameHeaderBytes + size) return std::optional<Frame>();
  Frame frame{static_cast<FrameType>(buffer_[position_ + 4]), std::string_view(buffer_).substr(position_ + kFrameHeaderBytes, size)};
  position_ += kFrameHeaderBytes + size;
  return std::optional<Frame>(frame);
}

}  // namespace phalanx::wire
