// The module's own operator new for tests of what happens when memory is refused; compiled only
// with POLYMARGIN_FAIL_ALLOCATIONS.
#include <cstdlib>
#include <new>

#include "base/memory.hpp"

void* operator new(std::size_t bytes) {
    if (void* p = pm::allocated(bytes == 0 ? 1 : bytes)) return p;
    throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}
void operator delete(void* p) noexcept {
    std::free(p);
}
void operator delete[](void* p) noexcept {
    std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
    std::free(p);
}
