#pragma once

// TANDEM_SANITIZED: a sanitizer with shadow memory and an allocator of its own watches what is compiled.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TANDEM_SANITIZED
#endif
#endif
