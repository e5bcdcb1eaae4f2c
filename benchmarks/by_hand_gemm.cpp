// GFLOP/s of the core's product of matrices: by_hand_gemm rows columns inner repeats, one line per type.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/gemm.hpp"

template <class T>
void measure(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, int repeats) {
    std::vector<T> A(m * k, T(1) / 3), B(k * n, T(1) / 7), C(m * n, T(0));
    pm::GemmScratch<T> scratch(n);
    const auto a = [&](std::int64_t i) -> const T* { return A.data() + i * k; };
    const auto b = [&](std::int64_t i) -> const T* { return B.data() + i * n; };
    double best = 0;
    for (int turn = 0; turn < 5; ++turn) {
        const std::clock_t began = std::clock();
        for (int r = 0; r < repeats; ++r)
            for (std::int64_t i = 0; i < m; i += pm::kPackedRows<T>)
                pm::gemm_add(i, std::min<std::int64_t>(m, i + pm::kPackedRows<T>), 0, n, k,
                             pm::ByIndex{a}, pm::ByDepth{b}, C.data(), n, scratch);
        const double seconds = double(std::clock() - began) / CLOCKS_PER_SEC;
        best = std::max(best, 2e-9 * double(m * n * k) * repeats / seconds);
    }
    std::printf("%s %.6g %.6g\n", name, best, double(C[0]));
}

int main(int, char** argv) {
    const std::int64_t m = std::atoll(argv[1]), n = std::atoll(argv[2]), k = std::atoll(argv[3]);
    const int repeats = std::atoi(argv[4]);
    measure<float>("float32", m, n, k, repeats);
    measure<double>("float64", m, n, k, repeats);
}
