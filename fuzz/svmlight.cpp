// libFuzzer target of the svmlight parser: whatever the bytes and however they come in blocks, it
// gives rows that fit together or an error, and the same for all blocks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "text/svmlight.hpp"

namespace {

struct Found {
    std::vector<double> labels;
    std::vector<std::int64_t> ends, columns;
    std::vector<float> values;
    bool failed = false;
    std::int64_t line = 0;

    bool operator==(const Found&) const = default;
};

void require(bool ok) {
    if (!ok) std::abort();
}

void take(pm::SvmlightParser<float>& parser, Found& found) {
    const std::int64_t before = std::int64_t(found.values.size());
    for (const double label : parser.labels) found.labels.push_back(label);
    require(parser.indptr.size() == parser.labels.size() + 1);
    std::int64_t last = 0;
    for (std::size_t row = 0; row < parser.labels.size(); ++row) {
        const std::int64_t end = parser.indptr.data()[row + 1];
        require(end >= last && std::size_t(end) <= parser.values.size());
        found.ends.push_back(before + (last = end));
    }
    if (parser.is_wide)
        for (const std::int64_t column : parser.wide) found.columns.push_back(column);
    else
        for (const std::int32_t column : parser.narrow) found.columns.push_back(column);
    for (const float value : parser.values) found.values.push_back(value);
    require(found.columns.size() == found.values.size());
    parser.clear();
}

// As Python reads a file: blocks of some bytes; what was not consumed comes again with the next.
Found read(const std::string& text, std::size_t block, std::int64_t most_rows) {
    Found found;
    pm::SvmlightParser<float> parser(0, std::int64_t(1) << 40, true);
    std::string waiting;
    std::size_t at = 0;
    try {
        while (true) {
            const std::size_t size = std::min(block, text.size() - at);
            // exactly as large as it is, for the sanitizer
            waiting.append(text, at, size);
            at += size;
            const bool last = at == text.size();
            std::vector<char> exact(waiting.begin(), waiting.end());
            const auto used =
                parser.parse(exact.data(), exact.data() + exact.size(), last, most_rows);
            require(used <= exact.size());
            waiting.erase(0, used);
            if (parser.n_rows() >= most_rows) take(parser, found);
            if (last && waiting.empty()) break;
        }
        take(parser, found);
    } catch (const pm::SvmlightError& error) {
        found = Found{};
        found.failed = true;
        found.line = error.line;
    }
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::size_t block = size == 0 ? 1 : 1 + data[0] % 61;
    require(read(text, size + 1, 1000) == read(text, block, 1000));
    read(text, size + 1, 2);
    return 0;
}
