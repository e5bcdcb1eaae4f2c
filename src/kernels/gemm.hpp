// C += A B for the blocked sweep: packed panels and a register-tiled micro-kernel.
//
// A plain BLAS would need its thread count changed for the whole process; results must not depend
// on who else calls it. A and B are given as functions of their indices, so that rows may lie
// anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "simd.hpp"

namespace pm {

inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
inline constexpr int kDepth = 256;  // of a packed panel

// MR rows and NV vectors of C: a is packed [depth][kTileRows], b [depth][kTileVectors].
template <int MR, int NV, class T>
PM_INLINE void micro_kernel(int depth, const T* a, const T* b, T* C, std::int64_t ldc) {
    using V = Vec<T>;
    V c[MR][NV];
    PM_UNROLL for (int r = 0; r < MR; ++r) PM_UNROLL for (int v = 0; v < NV; ++v) c[r][v] =
        V::set1(T(0));
    for (int r = 0; r < MR; ++r) PM_PREFETCH(C + r * ldc);
    for (int k = 0; k < depth; ++k) {
        V row[NV];
        PM_UNROLL for (int v = 0; v < NV; ++v) row[v] = V::load(b + v * kLanes<T>);
        PM_UNROLL for (int r = 0; r < MR; ++r) {
            const V x = V::set1(a[r]);
            PM_UNROLL for (int v = 0; v < NV; ++v) c[r][v] = V::fma(x, row[v], c[r][v]);
        }
        a += kTileRows;
        b += kTileVectors * kLanes<T>;
    }
    PM_UNROLL for (int r = 0; r < MR; ++r) PM_UNROLL for (int v = 0; v < NV; ++v) {
        T* at = C + r * ldc + v * kLanes<T>;
        (V::load(at) + c[r][v]).store(at);
    }
}

template <int NV, class T>
void micro_rows(int rows, int depth, const T* a, const T* b, T* C, std::int64_t ldc) {
    switch (rows) {
        case 6:
            return micro_kernel<6, NV>(depth, a, b, C, ldc);
        case 5:
            return micro_kernel<5, NV>(depth, a, b, C, ldc);
        case 4:
            return micro_kernel<4, NV>(depth, a, b, C, ldc);
        case 3:
            return micro_kernel<3, NV>(depth, a, b, C, ldc);
        case 2:
            return micro_kernel<2, NV>(depth, a, b, C, ldc);
        default:
            return micro_kernel<1, NV>(depth, a, b, C, ldc);
    }
}

// Columns [first, last) of C (multiples of the vector width), rows [0, m), inner dimension `inner`.
// a(i, k) gives an entry of A; b(k, column, out) writes kTileVectors vectors of B's row k.
template <class T, class A, class B>
void gemm_add(std::int64_t m, std::int64_t first, std::int64_t last, std::int64_t inner, A&& a,
              B&& b, T* C, std::int64_t ldc) {
    constexpr int width = kTileVectors * kLanes<T>;
    const std::int64_t groups = (m + kTileRows - 1) / kTileRows;
    const auto packed_a = std::make_unique_for_overwrite<T[]>(groups * kTileRows * kDepth);
    const auto packed_b = std::make_unique_for_overwrite<T[]>(width * kDepth);
    for (std::int64_t k0 = 0; k0 < inner; k0 += kDepth) {
        const int depth = static_cast<int>(std::min<std::int64_t>(kDepth, inner - k0));
        for (std::int64_t g = 0; g < groups; ++g) {
            T* out = packed_a.get() + g * kTileRows * kDepth;
            const int rows = static_cast<int>(std::min<std::int64_t>(kTileRows, m - g * kTileRows));
            for (int k = 0; k < depth; ++k)
                for (int r = 0; r < rows; ++r)
                    out[k * kTileRows + r] = a(g * kTileRows + r, k0 + k);
        }
        for (std::int64_t column = first; column < last; column += width) {
            const bool whole = column + width <= last;
            for (int k = 0; k < depth; ++k)
                b(k0 + k, column, whole ? kTileVectors : 1, packed_b.get() + k * width);
            for (std::int64_t g = 0; g < groups; ++g) {
                const int rows =
                    static_cast<int>(std::min<std::int64_t>(kTileRows, m - g * kTileRows));
                const T* packed = packed_a.get() + g * kTileRows * kDepth;
                T* at = C + g * kTileRows * ldc + column;
                if (whole)
                    micro_rows<kTileVectors>(rows, depth, packed, packed_b.get(), at, ldc);
                else
                    micro_rows<1>(rows, depth, packed, packed_b.get(), at, ldc);
            }
        }
    }
}

}  // namespace pm
