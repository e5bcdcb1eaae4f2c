// Threads that live for one call only, so that forks and many callers at once are safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace pm {

// f(begin, end) on equal parts of [0, n); the caller's thread takes the first.
template <class F>
void parallel_ranges(std::int64_t n, int threads, F&& f) {
    const std::int64_t parts = std::max<std::int64_t>(1, std::min<std::int64_t>(threads, n));
    std::vector<std::thread> others;
    others.reserve(parts - 1);
    for (std::int64_t part = 1; part < parts; ++part)
        others.emplace_back([&f, n, part, parts] { f(n * part / parts, n * (part + 1) / parts); });
    f(0, n / parts);
    for (auto& thread : others) thread.join();
}

}  // namespace pm
