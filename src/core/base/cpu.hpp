// Which instruction sets this machine runs.
#pragma once

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <immintrin.h>
#include <intrin.h>
#endif

namespace pm {

// "avx512", "avx2" or "baseline": the best set of kernels this machine can run.
inline const char* best_instruction_set() {
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? "avx512" : v3 ? "avx2" : "baseline";
#elif defined(_MSC_VER) && defined(_M_X64)
    int info[4];
    __cpuid(info, 0);
    if (info[0] < 7) return "baseline";
    __cpuidex(info, 1, 0);
    const bool fma = info[2] & (1 << 12), saved = info[2] & (1 << 27);
    if (!fma || !saved) return "baseline";
    const auto state = _xgetbv(0);
    __cpuidex(info, 7, 0);
    const bool avx2 = (info[1] & (1 << 5)) && (info[1] & (1 << 8)) && (state & 6) == 6;
    const bool avx512 = avx2 && (info[1] & (1 << 16)) && (info[1] & (1 << 17)) &&
                        (info[1] & (1 << 28)) && (info[1] & (1 << 30)) && (info[1] & (1u << 31)) &&
                        (state & 0xe6) == 0xe6;
    return avx512 ? "avx512" : avx2 ? "avx2" : "baseline";
#else
    return "baseline";
#endif
}

}  // namespace pm
