// Memory for what sweeps jump about in: in huge pages where the system gives them. To find the
// place of a small page takes longer than to read it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace pm {

inline constexpr std::size_t kHugePage = std::size_t(1) << 21;

struct FreePages {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(kHugePage)); }
};
using Pages = std::unique_ptr<void, FreePages>;

// Bytes that hold anything.
inline Pages take_pages(std::size_t bytes) {
    Pages pages(::operator new(bytes, std::align_val_t(kHugePage)), FreePages());
#ifdef __linux__
    if (bytes >= kHugePage) madvise(pages.get(), bytes, MADV_HUGEPAGE);
#endif
    return pages;
}

}  // namespace pm
