// Large arrays that are read here and there: in pages of 2 MB where the system has them. A row of
// the dual is in a place of its own; with pages of 4 KB, each costs a fault and a look at the page
// tables.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "base/memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pm {

struct FreePages {
    void operator()(void* p) const { std::free(p); }
};

template <class T>
using Pages = std::unique_ptr<T[], FreePages>;

// Not initialised. `large`: ask for large pages; they are zeroed as a whole when first touched.
template <class T>
Pages<T> make_pages(std::int64_t count, bool large) {
    static_assert(std::is_trivially_default_constructible_v<T>);
    void* p = nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::size_t page = std::size_t(1) << 21;
    const std::size_t bytes = (std::size_t(count) * sizeof(T) + page - 1) / page * page;
    if (large) p = std::aligned_alloc(page, bytes);
    if (p != nullptr) madvise(p, bytes, MADV_HUGEPAGE);  // without it, all is as before
#else
    (void)large;
#endif
    if (p == nullptr) p = allocated(std::size_t(count) * sizeof(T));
    if (p == nullptr) throw OutOfMemory("the dual variables", double(count) * sizeof(T));
    return Pages<T>(static_cast<T*>(p));
}

}  // namespace pm
