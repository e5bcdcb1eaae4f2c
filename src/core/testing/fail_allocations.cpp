// The module's own operator new for tests of what happens when memory is refused; compiled only
// with POLYMARGIN_FAIL_ALLOCATIONS.
//
// What is allocated with the GIL held is not refused: nanobind's bookkeeping of objects is, and it
// ends the process where it has no memory.
#include <cstdlib>
#include <new>

#include "base/memory.hpp"

extern "C" int PyGILState_Check(void);

void* operator new(std::size_t bytes) {
    if (bytes == 0) bytes = 1;
    if (void* p = PyGILState_Check() != 0 ? std::malloc(bytes) : pm::allocated(bytes)) return p;
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
