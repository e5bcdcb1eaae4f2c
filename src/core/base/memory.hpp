// Memory that is refused: an error that says what was being made and how large, which Python raises
// as MemoryError.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#ifdef POLYMARGIN_FAIL_ALLOCATIONS
#include <atomic>
#endif

namespace pm {

// Its text is in place: there may be no memory for a string.
class OutOfMemory : public std::bad_alloc {
  public:
    OutOfMemory(const char* what, double bytes) {
        std::snprintf(text_, sizeof(text_), "There is no memory for %s (%.3g MB).", what,
                      bytes / 1048576);
    }
    const char* what() const noexcept override { return text_; }

  private:
    char text_[160];
};

// f(), whose allocations make this, of about so many bytes.
template <class F>
decltype(auto) making(const char* what, double bytes, F&& f) {
    try {
        return f();
    } catch (const OutOfMemory&) {  // it knows more
        throw;
    } catch (const std::bad_alloc&) {
        throw OutOfMemory(what, bytes);
    }
}

#ifdef POLYMARGIN_FAIL_ALLOCATIONS
// A build for tests: the allocation after so many more is refused; below 0, none is.
struct Allocations {
    static inline std::atomic<long long> made{0}, left{-1};
    static bool is_refused() {
        made.fetch_add(1, std::memory_order_relaxed);
        return left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0;
    }
};
inline void* allocated(std::size_t bytes) {
    return Allocations::is_refused() ? nullptr : std::malloc(bytes);
}
inline void* reallocated(void* p, std::size_t bytes) {
    return Allocations::is_refused() ? nullptr : std::realloc(p, bytes);
}
#else
inline void* allocated(std::size_t bytes) {
    return std::malloc(bytes);
}
inline void* reallocated(void* p, std::size_t bytes) {
    return std::realloc(p, bytes);
}
#endif

}  // namespace pm
