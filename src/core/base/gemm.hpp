// C += A B for the blocked sweep: packed panels and a register-tiled micro-kernel.
//
// A plain BLAS would need its thread count changed for the whole process; results must not depend
// on who else calls it. The loops are those of Goto and van de Geijn (2008): a panel of B stays in
// the first-level cache while the packed rows of A pass by from the second. A and B are given as
// functions that return pointers, so that rows may lie anywhere, and be of another type than C.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/simd.hpp"

namespace pm {

inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
inline constexpr int kDepth = 256;           // of a packed panel
inline constexpr int kPackedBytes = 196608;  // of A, in the second-level cache
inline constexpr int kPackedColumns = 2048;  // of B

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

template <class T>
inline constexpr int kPackedRows = kPackedBytes / int(sizeof(T)) / kDepth / kTileRows * kTileRows;

// Packed panels for products of so many columns; one per thread, so that nothing is allocated per
// product.
template <class T>
struct GemmScratch {
    static constexpr int width = kTileVectors * kLanes<T>;
    explicit GemmScratch(std::int64_t columns = kPackedColumns)
        : a(kPackedRows<T> * kDepth),
          b((std::min<std::int64_t>(columns, kPackedColumns) + width) * kDepth) {}
    std::vector<T> a, b;
};

// An operand whose entries at (index, depth) are row(index)[depth],
template <class F>
struct ByIndex {
    F row;
    // Fills out[depth][Width] for `count` of `Width` indices.
    template <int Width, class T>
    void pack(std::int64_t index, int count, std::int64_t k0, int depth, T* out) const {
        int l = 0;
#ifdef PM_SHUFFLES
        if constexpr (std::is_same_v<decltype(row(index)), const T*>) {
            for (; l + kLanes<T> <= count; l += kLanes<T>) {
                const T* from[kLanes<T>];
                for (int r = 0; r < kLanes<T>; ++r) from[r] = row(index + l + r) + k0;
                int k = 0;
                for (; k + kLanes<T> <= depth; k += kLanes<T>)
                    transpose_square([&](int r) { return from[r] + k; }, out + k * Width + l,
                                     Width);
                for (; k < depth; ++k)
                    for (int r = 0; r < kLanes<T>; ++r) out[k * Width + l + r] = from[r][k];
            }
        }
#endif
        for (; l < count; ++l) {
            const auto* from = row(index + l) + k0;
            for (int k = 0; k < depth; ++k) out[k * Width + l] = T(from[k]);
        }
    }
};
template <class F>
ByIndex(F) -> ByIndex<F>;

// and one whose entries are row(depth)[index].
template <class F>
struct ByDepth {
    F row;
    template <int Width, class T>
    void pack(std::int64_t index, int count, std::int64_t k0, int depth, T* out) const {
        for (int k = 0; k < depth; ++k) {
            const auto* from = row(k0 + k) + index;
            if (count == Width)
                std::copy_n(from, Width, out + k * Width);
            else
                std::copy_n(from, count, out + k * Width);
        }
    }
};
template <class F>
ByDepth(F) -> ByDepth<F>;

// C[rows, columns] += A B, both given as half-open ranges; columns start and end at multiples of
// the vector width. Tiles above the diagonal are left out when `Lower` is set.
template <bool Lower = false, class T, class A, class B>
void gemm_add(std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1,
              std::int64_t inner, const A& a, const B& b, T* C, std::int64_t ldc,
              GemmScratch<T>& scratch) {
    constexpr int width = GemmScratch<T>::width;
    T *packed_a = scratch.a.data(), *packed_b = scratch.b.data();
    for (std::int64_t j0 = column0; j0 < column1; j0 += kPackedColumns) {
        std::int64_t j1 = std::min<std::int64_t>(j0 + kPackedColumns, column1);
        if (Lower) j1 = std::min(j1, (row1 + width - 1) / width * width);
        for (std::int64_t k0 = 0; k0 < inner; k0 += kDepth) {
            const int depth = static_cast<int>(std::min<std::int64_t>(kDepth, inner - k0));
            for (std::int64_t j = j0; j < j1; j += width)
                b.template pack<width>(j, int(std::min<std::int64_t>(width, j1 - j)), k0, depth,
                                       packed_b + (j - j0) * depth);
            for (std::int64_t i0 = row0; i0 < row1; i0 += kPackedRows<T>) {
                const std::int64_t i1 = std::min<std::int64_t>(i0 + kPackedRows<T>, row1);
                for (std::int64_t i = i0; i < i1; i += kTileRows)
                    a.template pack<kTileRows>(i, int(std::min<std::int64_t>(kTileRows, i1 - i)),
                                               k0, depth, packed_a + (i - i0) * depth);
                for (std::int64_t j = j0; j < j1; j += width) {
                    const T* panel = packed_b + (j - j0) * depth;
                    for (std::int64_t i = i0; i < i1; i += kTileRows) {
                        const int rows = int(std::min<std::int64_t>(kTileRows, i1 - i));
                        if (Lower && j >= i + rows) continue;
                        const T* strip = packed_a + (i - i0) * depth;
                        if (j + width <= j1)
                            micro_rows<kTileVectors>(rows, depth, strip, panel, C + i * ldc + j,
                                                     ldc);
                        else
                            micro_rows<1>(rows, depth, strip, panel, C + i * ldc + j, ldc);
                    }
                }
            }
        }
    }
}

}  // namespace pm
