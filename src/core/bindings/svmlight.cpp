// The Python face of the svmlight parser: blocks of bytes in, CSR parts out, the GIL released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "text/svmlight.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(pm::Growing<T>& part) {
    const std::size_t size = part.size();
    T* data = part.give_away();
    nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
    return {data, {size}, owner};
}

template <class T>
class Parser {
  public:
    Parser(std::int64_t smallest, std::int64_t largest, bool keep)
        : parser_(smallest, largest, keep) {}

    std::int64_t parse(
        nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> block,
        bool last, std::int64_t max_rows) {
        const auto* begin = reinterpret_cast<const char*>(block.data());
        nb::gil_scoped_release release;
        try {
            return std::int64_t(parser_.parse(begin, begin + block.shape(0), last, max_rows));
        } catch (const pm::SvmlightError& error) {
            error_ = error;
            return -1;
        }
    }

    // (message, line, column) after parse() returned -1
    nb::object error() const {
        if (!error_) return nb::none();
        return nb::make_tuple(error_->what(), error_->line, error_->column);
    }

    // (labels, indptr, indices, values) of the rows so far, which the parser then forgets
    nb::tuple take() {
        nb::object indices =
            parser_.is_wide ? nb::cast(as_array(parser_.wide)) : nb::cast(as_array(parser_.narrow));
        auto parts = nb::make_tuple(as_array(parser_.labels), as_array(parser_.indptr), indices,
                                    as_array(parser_.values));
        parser_.clear();
        return parts;
    }

    std::int64_t n_rows() const { return parser_.n_rows(); }
    std::int64_t n_rows_seen() const { return parser_.n_rows_seen; }
    std::int64_t n_values_seen() const { return parser_.n_values_seen; }
    std::int64_t min_index() const { return parser_.min_index; }
    std::int64_t max_index() const { return parser_.max_index; }

  private:
    pm::SvmlightParser<T> parser_;
    std::optional<pm::SvmlightError> error_;
};

template <class T>
void bind(nb::module_& m, const char* name) {
    using P = Parser<T>;
    nb::class_<P>(m, name)
        .def(nb::init<std::int64_t, std::int64_t, bool>(), "smallest"_a, "largest"_a, "keep"_a)
        .def("parse", &P::parse, "block"_a.noconvert(), "last"_a, "max_rows"_a,
             "Parse whole lines; returns the bytes consumed, or -1 where error says more.")
        .def("take", &P::take, "Labels, indptr, indices and values of the rows so far.")
        .def_prop_ro("error", &P::error)
        .def_prop_ro("n_rows", &P::n_rows)
        .def_prop_ro("n_rows_seen", &P::n_rows_seen)
        .def_prop_ro("n_values_seen", &P::n_values_seen)
        .def_prop_ro("min_index", &P::min_index)
        .def_prop_ro("max_index", &P::max_index);
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    bind<float>(m, "SvmlightParserF32");
    bind<double>(m, "SvmlightParserF64");
}
