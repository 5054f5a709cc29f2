// Whether AddressSanitizer is in this build. It keeps what is freed, so what a process holds says nothing there.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define PHALANX_HAS_ASAN true
#elif defined(__has_feature)
#define PHALANX_HAS_ASAN __has_feature(address_sanitizer)
#else
#define PHALANX_HAS_ASAN false
#endif

namespace phalanx::ranks {
constexpr bool kAddressSanitizer = PHALANX_HAS_ASAN;
}
