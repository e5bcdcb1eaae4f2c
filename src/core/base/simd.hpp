// Portable short vectors: the widest registers the translation unit is compiled for.
//
// GCC and Clang: their vector extensions. Elsewhere: a plain array the compiler may vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__AVX__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PM_INLINE inline __attribute__((always_inline))
#define PM_NOINLINE __attribute__((noinline))
#define PM_PREFETCH(p) __builtin_prefetch(p)
#define PM_UNROLL _Pragma("GCC unroll 16")
#define PM_RESTRICT __restrict__
#else
#define PM_INLINE __forceinline
#define PM_NOINLINE __declspec(noinline)
#define PM_PREFETCH(p) ((void)(p))
#define PM_UNROLL
#define PM_RESTRICT __restrict
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PM_SHUFFLES
#endif
#endif

namespace pm {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
constexpr int round_up_lanes(int n) {
    return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// All lanes of a vector as one number, halves with halves: a chain of as many steps as there are
// lanes is a good part of a visit.
template <class V, class F>
PM_INLINE auto reduced(V v, F join) {
    constexpr int lanes = sizeof(V) / sizeof(v[0]);
#ifdef PM_SHUFFLES
    const auto halves = [&]<int... I>(std::integer_sequence<int, I...>) {
        return join(__builtin_shufflevector(v, v, I...),
                    __builtin_shufflevector(v, v, (I + lanes / 2)...));
    };
    if constexpr (lanes == 2)
        return join(v[0], v[1]);
    else
        return reduced(halves(std::make_integer_sequence<int, lanes / 2>{}), join);
#else
    auto all = v[0];
    for (int i = 1; i < lanes; ++i) all = join(all, v[i]);
    return all;
#endif
}

template <class T>
struct Vec {
#if defined(__GNUC__) || defined(__clang__)
    typedef T native __attribute__((vector_size(kVectorBytes)));
#else
    struct native {
        T lane[kLanes<T>];
        T& operator[](int i) { return lane[i]; }
        T operator[](int i) const { return lane[i]; }
    };
#endif
    native v;

    static PM_INLINE Vec load(const T* p) {
        Vec r;
        std::memcpy(&r.v, p, sizeof(native));
        return r;
    }
    PM_INLINE void store(T* p) const { std::memcpy(p, &v, sizeof(native)); }

#if defined(__GNUC__) || defined(__clang__)
    static PM_INLINE Vec set1(T x) { return {x - native{}}; }  // x - 0 folds to a broadcast
    friend PM_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
    friend PM_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
    friend PM_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
    friend PM_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
    // a * b + c
    static PM_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
    static PM_INLINE Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
    static PM_INLINE Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
    // value where a > b, else zero
    static PM_INLINE Vec where_greater(Vec a, Vec b, Vec value) {
        return {a.v > b.v ? value.v : native{}};
    }
#else
    static PM_INLINE Vec set1(T x) {
        Vec r;
        for (int i = 0; i < kLanes<T>; ++i) r.v.lane[i] = x;
        return r;
    }
    template <class F>
    static PM_INLINE Vec map(Vec a, Vec b, F f) {
        Vec r;
        for (int i = 0; i < kLanes<T>; ++i) r.v.lane[i] = f(a.v.lane[i], b.v.lane[i]);
        return r;
    }
    friend PM_INLINE Vec operator+(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x + y; });
    }
    friend PM_INLINE Vec operator-(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x - y; });
    }
    friend PM_INLINE Vec operator*(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x * y; });
    }
    friend PM_INLINE Vec operator/(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x / y; });
    }
    static PM_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
    static PM_INLINE Vec max(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x > y ? x : y; });
    }
    static PM_INLINE Vec min(Vec a, Vec b) {
        return map(a, b, [](T x, T y) { return x < y ? x : y; });
    }
    static PM_INLINE Vec where_greater(Vec a, Vec b, Vec value) {
        Vec r;
        for (int i = 0; i < kLanes<T>; ++i)
            r.v.lane[i] = a.v.lane[i] > b.v.lane[i] ? value.v.lane[i] : T(0);
        return r;
    }
#endif

    PM_INLINE T sum() const {
        return reduced(v, [](auto a, auto b) { return a + b; });
    }
    PM_INLINE T maximum() const {
        return reduced(v, [](auto a, auto b) { return a > b ? a : b; });
    }
};

#ifdef PM_SHUFFLES
// a_0 b_0 a_1 b_1 ... from the first half of both vectors, or from the second.
template <bool Second, class T, int... I>
PM_INLINE Vec<T> interleave(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
    constexpr int first = Second ? kLanes<T> / 2 : 0;
    return {__builtin_shufflevector(a.v, b.v, (first + I / 2 + I % 2 * kLanes<T>)...)};
}

// out[k * ld + l] = row(l)[k], for as many rows and columns as a vector has lanes.
template <class T, class Row>
PM_INLINE void transpose_square(const Row& row, T* out, std::int64_t ld) {
    constexpr int lanes = kLanes<T>;
    constexpr std::make_integer_sequence<int, lanes> all{};
    Vec<T> from[lanes], to[lanes];
    PM_UNROLL for (int l = 0; l < lanes; ++l) from[l] = Vec<T>::load(row(l));
    PM_UNROLL for (int done = 1; done < lanes; done *= 2) {
        PM_UNROLL for (int l = 0; l < lanes / 2; ++l) {
            to[2 * l] = interleave<false>(from[l], from[l + lanes / 2], all);
            to[2 * l + 1] = interleave<true>(from[l], from[l + lanes / 2], all);
        }
        PM_UNROLL for (int l = 0; l < lanes; ++l) from[l] = to[l];
    }
    PM_UNROLL for (int l = 0; l < lanes; ++l) from[l].store(out + l * ld);
}
#endif

// Bit l is set where b[l] > t, over one vector.
PM_INLINE unsigned greater_mask(const double* b, double t) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(_mm512_loadu_pd(b), _mm512_set1_pd(t), _CMP_GT_OQ);
#elif defined(__AVX__)
    return unsigned(
        _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(b), _mm256_set1_pd(t), _CMP_GT_OQ)));
#else
    unsigned mask = 0;
    for (int l = 0; l < kLanes<double>; ++l) mask |= unsigned(b[l] > t) << l;
    return mask;
#endif
}

PM_INLINE unsigned greater_mask(const float* b, float t) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(b), _mm512_set1_ps(t), _CMP_GT_OQ);
#elif defined(__AVX__)
    return unsigned(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(b), _mm256_set1_ps(t), _CMP_GT_OQ)));
#else
    unsigned mask = 0;
    for (int l = 0; l < kLanes<float>; ++l) mask |= unsigned(b[l] > t) << l;
    return mask;
#endif
}

// f(j) for every j with b[j] > t, in order; `padded` is a multiple of the vector width. First all
// comparisons of a word, then its bits: few of them are set, and branches on each vector are hard
// to predict. False, and not all of them, when there are more than `most`.
template <class T, class F>
PM_INLINE bool for_each_greater(const T* b, int padded, T t, int most, F&& f) {
    constexpr int kWord = 64;
    for (int first = 0; first < padded; first += kWord) {
        const int width = padded - first < kWord ? padded - first : kWord;
        std::uint64_t word = 0;
        for (int j = 0; j < width; j += kLanes<T>)
            word |= std::uint64_t(greater_mask(b + first + j, t)) << j;
        most -= std::popcount(word);
        if (most < 0) return false;
        for (; word != 0; word &= word - 1) f(first + std::countr_zero(word));
    }
    return true;
}

}  // namespace pm
