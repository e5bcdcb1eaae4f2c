// The data matrix, row by row: CSR or dense, with an optional constant feature, and the two things
// a sweep does with a row: scores s = W^T x and the update W += x delta^T.
//
// W is feature-major: a row of `ld` classes per feature (padded to the vector width); the constant
// feature, if any, is the last row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/simd.hpp"

namespace pm {

template <class T, class I>
struct CsrRow {
    const T* value_;
    const I* index_;
    std::int64_t count;
    PM_INLINE T value(std::int64_t e) const { return value_[e]; }
    PM_INLINE std::int64_t feature(std::int64_t e) const { return index_[e]; }
    static constexpr bool scattered = true;
};

template <class T>
struct DenseRow {
    const T* value_;
    std::int64_t count;
    PM_INLINE T value(std::int64_t e) const { return value_[e]; }
    PM_INLINE std::int64_t feature(std::int64_t e) const { return e; }
    static constexpr bool scattered = false;
};

inline constexpr std::int64_t kLine = 64;  // bytes of a cache line

template <class T>
PM_INLINE void prefetch_span(const T* begin, std::int64_t count, std::int64_t most_bytes) {
    const char* p = reinterpret_cast<const char*>(begin);
    std::int64_t bytes = count * std::int64_t(sizeof(T));
    if (bytes > most_bytes) bytes = most_bytes;
    for (std::int64_t at = 0; at < bytes; at += kLine) PM_PREFETCH(p + at);
}

// Which examples the rows of a matrix are, where it does not hold those of all: row r is that of
// example[r], and the row of example i is place[i].
struct Held {
    const std::int64_t* example = nullptr;
    const std::int32_t* place = nullptr;
    PM_INLINE std::int64_t example_at(std::int64_t r) const {
        return example == nullptr ? r : example[r];
    }
    PM_INLINE std::int64_t row_of(std::int64_t i) const { return place == nullptr ? i : place[i]; }
};

// In both matrices, i is the number of an example.
template <class T, class I>
struct CsrMatrix {
    using Scalar = T;
    const T* data;
    const I* indices;
    const I* indptr;
    std::int64_t n, d;
    T bias;  // value of the constant feature, 0: none
    Held held = {};
    T bias_step = bias;  // by which a change of an example's scores moves the constant's weights
    PM_INLINE CsrRow<T, I> row(std::int64_t i) const {
        const std::int64_t r = held.row_of(i);
        const auto begin = indptr[r];
        return {data + begin, indices + begin, std::int64_t(indptr[r + 1] - begin)};
    }
    PM_INLINE void prefetch_bounds(std::int64_t i) const { PM_PREFETCH(indptr + held.row_of(i)); }
    PM_INLINE void prefetch_row(std::int64_t i) const {
        const std::int64_t r = held.row_of(i);
        const auto begin = indptr[r];
        const auto count = std::int64_t(indptr[r + 1] - begin);
        prefetch_span(data + begin, count, 2048);
        prefetch_span(indices + begin, count, 1024);
    }
};

template <class T>
using CsrMatrix32 = CsrMatrix<T, std::int32_t>;
template <class T>
using CsrMatrix64 = CsrMatrix<T, std::int64_t>;

template <class T>
struct DenseMatrix {
    using Scalar = T;
    const T* data;
    std::int64_t n, d;
    T bias;
    Held held = {};
    T bias_step = bias;
    PM_INLINE DenseRow<T> row(std::int64_t i) const { return {data + held.row_of(i) * d, d}; }
    PM_INLINE void prefetch_bounds(std::int64_t) const {}
    PM_INLINE void prefetch_row(std::int64_t i) const { prefetch_span(row(i).value_, d, 2048); }
};

inline constexpr int kFetchAhead = 12;

template <class Row, class T>
PM_INLINE void prefetch_weights(const Row& x, std::int64_t e, const T* W, std::int64_t ld,
                                std::int64_t classes) {
    if constexpr (Row::scattered) {
        if (e < x.count) prefetch_span(W + x.feature(e) * ld, classes, 512);
    }
}

// Asks for the first weights of a row that is about to be scored.
template <class Row, class T>
PM_INLINE void prefetch_first_weights(const Row& x, const T* W, std::int64_t ld,
                                      std::int64_t width) {
    for (std::int64_t e = 0; e < kFetchAhead; ++e) prefetch_weights(x, e, W, ld, width);
}

// Few classes: all scores stay in NV registers, two sets of accumulators hide the latency.
template <int NV, class Row, class T>
void scores_in_registers(const Row& x, T bias, const T* W, std::int64_t ld, const T* W_bias, T* s) {
    using V = Vec<T>;
    V even[NV], odd[NV];
    const V start = V::set1(bias);
    PM_UNROLL for (int v = 0; v < NV; ++v) {
        even[v] = bias != T(0) ? start * V::load(W_bias + v * kLanes<T>) : V::set1(T(0));
        odd[v] = V::set1(T(0));
    }
    std::int64_t e = 0;
    for (; e + 1 < x.count; e += 2) {
        const T* w0 = W + x.feature(e) * ld;
        const T* w1 = W + x.feature(e + 1) * ld;
        prefetch_weights(x, e + kFetchAhead, W, ld, NV * kLanes<T>);
        prefetch_weights(x, e + kFetchAhead + 1, W, ld, NV * kLanes<T>);
        const V x0 = V::set1(x.value(e)), x1 = V::set1(x.value(e + 1));
        PM_UNROLL for (int v = 0; v < NV; ++v) {
            even[v] = V::fma(x0, V::load(w0 + v * kLanes<T>), even[v]);
            odd[v] = V::fma(x1, V::load(w1 + v * kLanes<T>), odd[v]);
        }
    }
    if (e < x.count) {
        const T* w0 = W + x.feature(e) * ld;
        const V x0 = V::set1(x.value(e));
        PM_UNROLL for (int v = 0; v < NV; ++v) even[v] =
            V::fma(x0, V::load(w0 + v * kLanes<T>), even[v]);
    }
    PM_UNROLL for (int v = 0; v < NV; ++v)(even[v] + odd[v]).store(s + v * kLanes<T>);
}

// Many classes: four rows of W at a time onto the scores, which stay in the first-level cache.
template <class Row, class T>
void scores_streamed(const Row& x, T bias, std::int64_t width, const T* W, std::int64_t ld,
                     const T* W_bias, T* s) {
    using V = Vec<T>;
    const V start = V::set1(bias);
    for (std::int64_t j = 0; j < width; j += kLanes<T>)
        (bias != T(0) ? start * V::load(W_bias + j) : V::set1(T(0))).store(s + j);
    std::int64_t e = 0;
    for (; e + 3 < x.count; e += 4) {
        const T *w0 = W + x.feature(e) * ld, *w1 = W + x.feature(e + 1) * ld,
                *w2 = W + x.feature(e + 2) * ld, *w3 = W + x.feature(e + 3) * ld;
        const V x0 = V::set1(x.value(e)), x1 = V::set1(x.value(e + 1)),
                x2 = V::set1(x.value(e + 2)), x3 = V::set1(x.value(e + 3));
        for (std::int64_t ahead = 8; ahead < 12; ++ahead)
            prefetch_weights(x, e + ahead, W, ld, width);
        for (std::int64_t j = 0; j < width; j += kLanes<T>) {
            const V a = V::fma(x0, V::load(w0 + j), V::load(s + j));
            const V b = V::fma(x2, V::load(w2 + j), x1 * V::load(w1 + j));
            V::fma(x3, V::load(w3 + j), a + b).store(s + j);
        }
    }
    for (; e < x.count; ++e) {
        const T* w0 = W + x.feature(e) * ld;
        const V x0 = V::set1(x.value(e));
        for (std::int64_t j = 0; j < width; j += kLanes<T>)
            V::fma(x0, V::load(w0 + j), V::load(s + j)).store(s + j);
    }
}

// The scores of `vectors` vectors of classes from the one W points at.
template <class Row, class T>
PM_INLINE void scores_of_vectors(const Row& x, T bias, int vectors, const T* W, std::int64_t ld,
                                 const T* W_bias, T* s) {
    switch (vectors) {
        case 1:
            return scores_in_registers<1>(x, bias, W, ld, W_bias, s);
        case 2:
            return scores_in_registers<2>(x, bias, W, ld, W_bias, s);
        case 3:
            return scores_in_registers<3>(x, bias, W, ld, W_bias, s);
        case 4:
            return scores_in_registers<4>(x, bias, W, ld, W_bias, s);
        case 5:
            return scores_in_registers<5>(x, bias, W, ld, W_bias, s);
        case 6:
            return scores_in_registers<6>(x, bias, W, ld, W_bias, s);
        case 7:
            return scores_in_registers<7>(x, bias, W, ld, W_bias, s);
        default:
            return scores_streamed(x, bias, std::int64_t(vectors) * kLanes<T>, W, ld, W_bias, s);
    }
}

// The scores of `width` classes from the one W points at; without it, of all.
template <class Matrix, class T>
void row_scores(const Matrix& X, std::int64_t i, const T* W, std::int64_t ld, std::int64_t width,
                T* s) {
    const int vectors = static_cast<int>(width / kLanes<T>);
    scores_of_vectors(X.row(i), X.bias, vectors, W, ld, W + X.d * ld, s);
}
template <class Matrix, class T>
void row_scores(const Matrix& X, std::int64_t i, const T* W, std::int64_t ld, T* s) {
    row_scores(X, i, W, ld, ld, s);
}

// Calls f with the number of classes as a compile-time constant where it is small, else with 0.
template <class F>
PM_INLINE void with_few(int m, F&& f) {
    switch (m) {
        case 2:
            return f(std::integral_constant<int, 2>{});
        case 3:
            return f(std::integral_constant<int, 3>{});
        case 4:
            return f(std::integral_constant<int, 4>{});
        case 5:
            return f(std::integral_constant<int, 5>{});
        case 6:
            return f(std::integral_constant<int, 6>{});
        default:
            return f(std::integral_constant<int, 0>{});
    }
}

// Scores of the listed classes only.
template <class Matrix, class T>
void row_scores_of(const Matrix& X, std::int64_t i, const T* W, std::int64_t ld,
                   const std::int32_t* classes, int m, T* s) {
    const auto x = X.row(i);
    const T* W_bias = W + X.d * ld;
    for (int j = 0; j < m; ++j) s[j] = X.bias != T(0) ? X.bias * W_bias[classes[j]] : T(0);
    with_few(m, [&](auto few) {
        if constexpr (few.value > 0) {
            T sum[few.value];
            std::int64_t at[few.value];
            PM_UNROLL for (int j = 0; j < few.value; ++j) {
                sum[j] = s[j];
                at[j] = classes[j];
            }
            for (std::int64_t e = 0; e < x.count; ++e) {
                const T* w = W + x.feature(e) * ld;
                const T value = x.value(e);
                PM_UNROLL for (int j = 0; j < few.value; ++j) sum[j] += value * w[at[j]];
            }
            PM_UNROLL for (int j = 0; j < few.value; ++j) s[j] = sum[j];
        } else {
            for (std::int64_t e = 0; e < x.count; ++e) {
                const T* w = W + x.feature(e) * ld;
                const T value = x.value(e);
                for (int j = 0; j < m; ++j) s[j] += value * w[classes[j]];
            }
        }
    });
}

// Scores accumulated in double whatever W is: what a certificate is computed from.
template <class Matrix, class T>
void row_scores_precise(const Matrix& X, std::int64_t i, const T* W, std::int64_t ld, double* s) {
    const auto x = X.row(i);
    const T* W_bias = W + X.d * ld;
    for (std::int64_t j = 0; j < ld; ++j)
        s[j] = X.bias != T(0) ? double(X.bias) * double(W_bias[j]) : 0.0;
    for (std::int64_t e = 0; e < x.count; ++e) {
        const T* w = W + x.feature(e) * ld;
        const double value = double(x.value(e));
        for (std::int64_t j = 0; j < ld; ++j) s[j] += value * double(w[j]);
    }
}

template <class T>
PM_INLINE void axpy_row(T value, const T* delta, std::int64_t width, T* w) {
    using V = Vec<T>;
    const V x = V::set1(value);
    for (std::int64_t j = 0; j < width; j += kLanes<T>)
        V::fma(x, V::load(delta + j), V::load(w + j)).store(w + j);
}

// W += x delta^T for `width` classes from the one W points at.
template <class Matrix, class T>
void row_add(const Matrix& X, std::int64_t i, const T* delta, std::int64_t width, T* W,
             std::int64_t ld) {
    const auto x = X.row(i);
    for (std::int64_t e = 0; e < x.count; ++e)
        axpy_row(x.value(e), delta, width, W + x.feature(e) * ld);
    if (X.bias != T(0)) axpy_row(X.bias_step, delta, width, W + X.d * ld);
}

// W += x delta^T for the listed classes.
template <class Matrix, class T>
void row_add_of(const Matrix& X, std::int64_t i, const std::int32_t* classes, const T* delta, int m,
                T* W, std::int64_t ld) {
    const auto x = X.row(i);
    with_few(m, [&](auto few) {
        if constexpr (few.value > 0) {
            T change[few.value];
            std::int64_t at[few.value];
            PM_UNROLL for (int j = 0; j < few.value; ++j) {
                change[j] = delta[j];
                at[j] = classes[j];
            }
            for (std::int64_t e = 0; e < x.count; ++e) {
                T* w = W + x.feature(e) * ld;
                const T value = x.value(e);
                PM_UNROLL for (int j = 0; j < few.value; ++j) w[at[j]] += value * change[j];
            }
        } else {
            for (std::int64_t e = 0; e < x.count; ++e) {
                T* w = W + x.feature(e) * ld;
                const T value = x.value(e);
                for (int j = 0; j < m; ++j) w[classes[j]] += value * delta[j];
            }
        }
    });
    if (X.bias != T(0)) {
        T* w = W + X.d * ld;
        for (int j = 0; j < m; ++j) w[classes[j]] += X.bias_step * delta[j];
    }
}

// All that sweeps and streams do with rows; compiled once, in rows.cpp.
#define PM_ROW_FUNCTIONS(declared, Matrix, T)                                                     \
    declared template void row_scores(const Matrix&, std::int64_t, const T*, std::int64_t,        \
                                      std::int64_t, T*);                                          \
    declared template void row_scores_of(const Matrix&, std::int64_t, const T*, std::int64_t,     \
                                         const std::int32_t*, int, T*);                           \
    declared template void row_add(const Matrix&, std::int64_t, const T*, std::int64_t, T*,       \
                                   std::int64_t);                                                 \
    declared template void row_add_of(const Matrix&, std::int64_t, const std::int32_t*, const T*, \
                                      int, T*, std::int64_t);
#define PM_ROW_FUNCTIONS_OF(declared, T)          \
    PM_ROW_FUNCTIONS(declared, DenseMatrix<T>, T) \
    PM_ROW_FUNCTIONS(declared, CsrMatrix32<T>, T) \
    PM_ROW_FUNCTIONS(declared, CsrMatrix64<T>, T)

PM_ROW_FUNCTIONS_OF(extern, float)
PM_ROW_FUNCTIONS_OF(extern, double)

}  // namespace pm
