// A parser of svmlight (LIBSVM) text, fed block by block:
//
//     label [qid:number] index:value index:value ... [# comment]
//
// Numbers are rounded correctly, indices end up sorted within a row, and whatever else a line holds
// is an error with its line and column, both counted from 1 (columns in bytes).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "text/decimal.hpp"

namespace pm {

struct SvmlightError : std::runtime_error {
    SvmlightError(const std::string& what, std::int64_t line, std::int64_t column)
        : std::runtime_error(what), line(line), column(column) {}
    std::int64_t line, column;
};

// An array that grows by realloc (which moves large blocks without copying them) and whose memory
// can be given away; free() releases it.
template <class T>
class Growing {
  public:
    Growing() = default;
    ~Growing() { std::free(data_); }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;

    std::size_t size() const { return size_; }
    T* data() { return data_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    void push_back(T value) {  // room must have been made
        data_[size_++] = value;
    }
    void make_room(std::size_t more) {
        if (size_ + more > room_) resize_room(std::max(size_ + more, room_ + room_ / 2 + 1024));
    }
    void shrink(std::size_t size) { size_ = size; }
    T* give_away() {
        resize_room(std::max<std::size_t>(size_, 1));
        size_ = room_ = 0;
        return std::exchange(data_, nullptr);
    }

  private:
    void resize_room(std::size_t room) {
        void* moved = nullptr;
        if (room <= std::numeric_limits<std::size_t>::max() / sizeof(T))
            moved = reallocated(data_, room * sizeof(T));
        if (moved == nullptr)
            throw OutOfMemory("the examples of an svmlight file", double(room) * sizeof(T));
        data_ = static_cast<T*>(moved);
        room_ = room;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, room_ = 0;
};

template <class T>
class SvmlightParser {
  public:
    // Indices below `smallest` or above `largest` are errors. Without `keep`, lines are checked
    // and counted, and forgotten.
    SvmlightParser(std::int64_t smallest, std::int64_t largest, bool keep)
        : smallest_(smallest), largest_(largest), keep_(keep) {
        clear();
    }

    // The rows since the last clear(): CSR parts as the file has them, indices not shifted.
    Growing<double> labels;
    Growing<std::int64_t> indptr;
    Growing<std::int32_t> narrow;  // indices while all of them fit ...
    Growing<std::int64_t> wide;    // ... and all of them once one does not
    Growing<T> values;
    bool is_wide = false;

    // What the whole file has shown so far.
    std::int64_t min_index = std::numeric_limits<std::int64_t>::max(), max_index = -1;
    std::int64_t n_rows_seen = 0, n_values_seen = 0;

    void clear() {
        labels.shrink(0);
        indptr.shrink(0);
        narrow.shrink(0);
        wide.shrink(0);
        values.shrink(0);
        is_wide = false;
        indptr.make_room(1);
        indptr.push_back(0);
    }

    std::int64_t n_rows() const { return std::int64_t(labels.size()); }

    // Parses whole lines, at most until there are `max_rows` rows; returns the bytes consumed.
    // What follows the last line break is left for the next call, unless this one is the last.
    std::size_t parse(const char* begin, const char* end, bool last, std::int64_t max_rows) {
        const char* at = begin;
        if (line_ == 1 && !marked_ && end - at >= 3 && std::memcmp(at, "\xef\xbb\xbf", 3) == 0) {
            at += 3;
            marked_ = true;
        }
        while (at < end && n_rows() < max_rows) {
            const auto* stop =
                static_cast<const char*>(std::memchr(at, '\n', std::size_t(end - at)));
            if (stop != nullptr) {
                parse_line(at, stop);
                at = stop + 1;
            } else if (last) {
                const std::string line = std::string(at, end) + '\n';
                parse_line(line.data(), line.data() + line.size() - 1);
                at = end;
            } else {
                break;
            }
            ++line_;
        }
        return std::size_t(at - begin);
    }

  private:
    // *end is a line break, which ends every number; so no loop has to look at end itself.
    void parse_line(const char* at, const char* end) {
        begin_ = at;
        end_ = end;
        at = skip_blanks(at);
        if (ends(at)) return;
        double label;
        at = parse_label(at, label);
        labels.make_room(1);
        indptr.make_room(1);
        const auto more = std::size_t(end - at) / 4 + 1;  // an entry takes four bytes or more
        values.make_room(more);
        is_wide ? wide.make_room(more) : narrow.make_room(more);

        const auto first = values.size();
        std::int64_t previous = -1;
        bool sorted = true;
        at = skip_blanks(at);
        if (at[0] == 'q' && end - at > 4 && std::memcmp(at, "qid:", 4) == 0) at = skip_qid(at);
        while (!ends(at)) {
            std::int64_t index;
            const char* token = at;
            at = parse_index(at, index);
            at = parse_value(token, at);
            if (index > std::numeric_limits<std::int32_t>::max() && !is_wide) widen(more);
            is_wide ? wide.push_back(index) : narrow.push_back(std::int32_t(index));
            sorted &= index > previous;
            previous = index;
            min_index = std::min(min_index, index);
            max_index = std::max(max_index, index);
        }
        if (!sorted) is_wide ? sort_row(wide, first) : sort_row(narrow, first);
        finish_row(label, first);
    }

    void finish_row(double label, std::size_t first) {
        ++n_rows_seen;
        n_values_seen += std::int64_t(values.size() - first);
        if (keep_) {
            labels.push_back(label);
            indptr.push_back(std::int64_t(values.size()));
        } else {
            clear();
        }
    }

    const char* parse_label(const char* at, double& label) {
        const char* token = at;
        const auto found = parse_decimal(at, label);
        if (*at == ':')
            fail(token, "the label is missing: a line starts with it, found " + quote(token));
        if (*at == ',')
            fail(token, "several labels (" + quote(token) +
                            "): only one per example is supported; multilabel files must be split");
        if (found == Decimal::not_finite || (found == Decimal::number && !std::isfinite(label)))
            fail(token, "the label " + quote(token) + " is not finite");
        if (found != Decimal::number || !(is_blank(*at) || ends(at)))
            fail(token, "the label " + quote(token) +
                            " is not a number; labels that are words need CSV or JSONL");
        return at;
    }

    const char* parse_index(const char* at, std::int64_t& index) {
        const char* token = at;
        std::uint64_t number = 0;
        while (is_digit(*at) && at - token < 19) number = number * 10 + std::uint64_t(*at++ - '0');
        if (is_digit(*at)) {
            for (number = 0, at = token; *at == '0';) ++at;  // leading zeros may be many
            const char* digits = at;
            while (is_digit(*at) && at - digits < 19)
                number = number * 10 + std::uint64_t(*at++ - '0');
            if (is_digit(*at)) fail(token, "the index " + quote(token) + " is too large");
        }
        if (at == token || *at != ':') fail(token, "expected index:value, found " + quote(token));
        if (number > std::uint64_t(std::numeric_limits<std::int64_t>::max() - 1))
            fail(token, "the index " + quote(token) + " is too large");
        index = std::int64_t(number);
        if (index < smallest_)
            fail(token, "index 0 in a file whose first feature is said to have index 1");
        if (index > largest_)
            fail(token, "the index in " + quote(token) + " is beyond the number of features");
        return at + 1;
    }

    const char* parse_value(const char* token, const char* at) {
        double number;
        const auto found = parse_decimal(at, number);
        if (found == Decimal::number && (is_blank(*at) || ends(at))) {
            const T value = T(number);
            if (!std::isfinite(value)) fail(token, "the value of " + quote(token) + " overflows");
            values.push_back(value);
            return skip_blanks(at);
        }
        if (found == Decimal::not_finite)
            fail(token, "the value of " + quote(token) + " is not finite");
        fail(token, "expected a number after the colon, found " + quote(token));
    }

    const char* skip_qid(const char* at) {
        double id;
        const char* token = at;
        at += 4;
        if (parse_decimal(at, id) != Decimal::number || !(is_blank(*at) || ends(at)))
            fail(token, "expected qid:number, found " + quote(token));
        return skip_blanks(at);
    }

    void widen(std::size_t more) {
        wide.make_room(narrow.size() + more);
        for (const auto index : narrow) wide.push_back(index);
        narrow.shrink(0);
        is_wide = true;
    }

    template <class I>
    void sort_row(Growing<I>& indices, std::size_t first) {
        std::vector<std::pair<I, T>> row;
        for (auto e = first; e < values.size(); ++e)
            row.emplace_back(indices.data()[e], values.data()[e]);
        std::sort(row.begin(), row.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t e = 0; e < row.size(); ++e) {
            if (e > 0 && row[e].first == row[e - 1].first) fail_twice(std::int64_t(row[e].first));
            indices.data()[first + e] = row[e].first;
            values.data()[first + e] = row[e].second;
        }
    }

    // Finds the second of two entries with this index.
    [[noreturn]] void fail_twice(std::int64_t index) {
        int seen = 0;
        const char* at = skip_blanks(begin_);
        while (!(is_blank(*at) || ends(at))) ++at;
        while (true) {
            at = skip_blanks(at);
            if (ends(at)) break;
            const char* token = at;
            std::int64_t number = -1;
            if (is_digit(*at)) parse_index(at, number);
            if (number == index && ++seen == 2)
                fail(token, "index " + std::to_string(index) + " occurs twice in this row");
            while (!(is_blank(*at) || ends(at))) ++at;
        }
        fail(begin_, "index " + std::to_string(index) + " occurs twice in this row");
    }

    static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }
    static const char* skip_blanks(const char* at) {
        while (is_blank(*at)) ++at;
        return at;
    }
    static bool ends(const char* at) { return *at == '\n' || *at == '#'; }

    // The token that starts here, shortened, with bytes that cannot be shown as \xNN.
    std::string quote(const char* at) const {
        std::string text = "'";
        int shown = 0;
        for (; at < end_ && !is_blank(*at) && shown < 24; ++at, ++shown) {
            const auto byte = static_cast<unsigned char>(*at);
            constexpr char hex[] = "0123456789abcdef";
            if (byte >= 0x20 && byte < 0x7f)
                text += *at;
            else
                text += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
        return text + (at < end_ && !is_blank(*at) ? "...'" : "'");
    }

    [[noreturn]] void fail(const char* at, const std::string& what) const {
        throw SvmlightError(what, line_, at - begin_ + 1);
    }

    std::int64_t smallest_, largest_;
    bool keep_;
    bool marked_ = false;  // whether a byte order mark has been read
    std::int64_t line_ = 1;
    const char *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace pm
