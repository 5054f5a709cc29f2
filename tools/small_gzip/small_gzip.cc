#include "small_gzip/small_gzip.h"

#include "base/gzip.h"

#ifdef PHALANX_LIBDEFLATE
#include <libdeflate.h>
#endif

namespace phalanx::base {

#ifdef PHALANX_LIBDEFLATE
Result<std::string> small_gzip(std::string_view text) {
  constexpr int kSmallest = 12;
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(kSmallest);
  if (!compressor) return fail(ErrorKind::kInternal, "libdeflate cannot compress: no memory");
  std::string out(libdeflate_gzip_compress_bound(compressor, text.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor, text.data(), text.size(), out.data(), out.size()));
  libdeflate_free_compressor(compressor);
  if (out.empty()) return fail(ErrorKind::kInternal, "libdeflate cannot compress");
  return out;
}
#else
Result<std::string> small_gzip(std::string_view text) { return gzip(text); }
#endif

}  // namespace phalanx::base
