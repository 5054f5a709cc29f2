#include "hosts/connect/payload.h"

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/try.h"

namespace phalanx::hosts {

base::Result<std::string_view> Payload::message(Encoding encoding) {
  const bool as_it_is = encoding == Encoding::kRaw;
  std::string& message = as_it_is ? raw_ : packed_;
  if (!message.empty()) return std::string_view(message);
  std::string unpacked;
  if (as_it_is) { TRY_ASSIGN(unpacked, base::gunzip(program_.gzip, program_.bytes)); }
  const std::string_view bytes = as_it_is ? unpacked : program_.gzip;
  message = fmt::format("{} {} {} {}\n", program_.sha256, program_.bytes, as_it_is ? "raw" : "gzip", bytes.size()).append(bytes);
  return std::string_view(message);
}

}  // namespace phalanx::hosts
