// Decimal numbers to double, correctly rounded.
//
// Up to 2^53 times a power of ten that is a double itself takes one multiplication or division
// (Clinger 1990); the rest goes to std::from_chars, or to strtod where the library has none.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#if !defined(__cpp_lib_to_chars)
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#else
#include <locale.h>
#endif
#include <string>
#endif

namespace pm {

enum class Decimal { number, not_finite, no_number };

inline bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') < 10;
}

// The text is a sound decimal number; `exponent` is that of its first digit or higher.
inline double slow_decimal(const char* begin, const char* end, bool large) {
#if defined(__cpp_lib_to_chars)
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc::result_out_of_range) return value;
    return large ? std::numeric_limits<double>::infinity() : 0.0;
#else
    (void)large;
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", locale_t(0));
    return strtod_l(std::string(begin, end).c_str(), nullptr, c_locale);
#endif
}

// Reads [+-]digits[.digits][e[+-]digits] and moves `at` behind it. What follows the text must be a
// character that cannot be part of a number. An overflow gives infinity, an underflow zero.
inline Decimal parse_decimal(const char*& at, double& value) {
    constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = *at == '-';
    if (negative || *at == '+') ++at;
    const char* begin = at;
    std::uint64_t mantissa = 0;  // wrong beyond 19 digits, and then not used
    while (is_digit(*at)) mantissa = mantissa * 10 + std::uint64_t(*at++ - '0');
    auto n_digits = at - begin;
    auto integer_digits = n_digits;
    std::int64_t exponent = 0;
    if (*at == '.') {
        const char* fraction = ++at;
        while (is_digit(*at)) mantissa = mantissa * 10 + std::uint64_t(*at++ - '0');
        exponent = fraction - at;
        n_digits += at - fraction;
    }
    if (n_digits == 0) {
        at = begin;
        const auto lower = [at](int i) { return at[i] | 0x20; };
        const bool nan = lower(0) == 'n' && lower(1) == 'a' && lower(2) == 'n';
        const bool inf = lower(0) == 'i' && lower(1) == 'n' && lower(2) == 'f';
        return nan || inf ? Decimal::not_finite : Decimal::no_number;
    }
    std::int64_t written = 0;
    if ((*at | 0x20) == 'e') {
        const char* sign = ++at;
        if (*at == '-' || *at == '+') ++at;
        if (!is_digit(*at)) return Decimal::no_number;
        for (; is_digit(*at); ++at)
            if (written < 100'000'000) written = written * 10 + (*at - '0');
        if (*sign == '-') written = -written;
        exponent += written;
    }
    double size;
    if (n_digits <= 19 && mantissa <= (std::uint64_t(1) << 53) && exponent >= -22 &&
        exponent <= 22) {
        size = double(mantissa);
        size = exponent < 0 ? size / powers[-exponent] : size * powers[exponent];
    } else {
        // only the sign of the decimal exponent matters where the result is out of range
        const char* digit = begin;
        while (*digit == '0' || *digit == '.') ++digit;
        const auto point = begin + integer_digits;
        const bool large = (point - digit) + written > 0;
        size = slow_decimal(begin, at, large);
    }
    value = negative ? -size : size;
    return Decimal::number;
}

}  // namespace pm
