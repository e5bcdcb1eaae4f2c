// The Python face of the loops over examples that decide whom a pass visits.
#include "sweeps/schedule.hpp"

#include "bindings/common.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

using Order = Vector<const std::int64_t>;

void check_within(const Order& order, std::size_t n) {
    for (std::size_t at = 0; at < order.shape(0); ++at)
        require(order.data()[at] >= 0 && std::size_t(order.data()[at]) < n,
                "order points outside the data");
}

std::int64_t list_due(Order among, Vector<const std::int32_t> next, std::int32_t now,
                      Vector<std::int64_t> due) {
    require(due.shape(0) == among.shape(0), "room for all is needed");
    check_within(among, next.shape(0));
    nb::gil_scoped_release release;
    return pm::list_due(among.data(), std::int64_t(among.shape(0)), next.data(), now, due.data());
}

std::int64_t list_above(Order among, Vector<const double> share, double bound,
                        Vector<std::int64_t> found) {
    require(found.shape(0) == among.shape(0), "room for all is needed");
    check_within(among, share.shape(0));
    nb::gil_scoped_release release;
    return pm::list_above(among.data(), std::int64_t(among.shape(0)), share.data(), bound,
                          found.data());
}

double mean_share(Order order, Vector<const double> share) {
    require(order.shape(0) > 0, "the mean of nothing");
    check_within(order, share.shape(0));
    nb::gil_scoped_release release;
    const auto n = std::int64_t(order.shape(0));
    return pm::sum_of_shares(order.data(), n, share.data()) / double(n);
}

void set_next_visits(Order order, Vector<const double> share, double target, double longest,
                     std::int32_t now, std::uint64_t seed, Vector<float> interval,
                     Vector<std::int32_t> next) {
    require(interval.shape(0) == share.shape(0) && next.shape(0) == share.shape(0),
            "arrays of the examples differ in length");
    check_within(order, share.shape(0));
    nb::gil_scoped_release release;
    pm::set_next_visits(order.data(), std::int64_t(order.shape(0)), share.data(), target, longest,
                        now, seed, interval.data(), next.data());
}

void shuffled(Order order, std::uint64_t seed, Vector<std::int64_t> out) {
    require(out.shape(0) == order.shape(0), "orders differ in length");
    nb::gil_scoped_release release;
    pm::shuffled(order.data(), std::int64_t(order.shape(0)), seed, out.data());
}

}  // namespace

void bind_schedule(nb::module_& m) {
    m.def("list_due", &list_due, "among"_a.noconvert(), "next"_a.noconvert(), "now"_a,
          "due"_a.noconvert(), "Writes those whose visit is due, in their order; how many.");
    m.def("list_above", &list_above, "among"_a.noconvert(), "share"_a.noconvert(), "bound"_a,
          "found"_a.noconvert(), "Writes those whose share is above the bound; how many.");
    m.def("mean_share", &mean_share, "order"_a.noconvert(), "share"_a.noconvert(),
          "The mean share of these examples.");
    m.def("set_next_visits", &set_next_visits, "order"_a.noconvert(), "share"_a.noconvert(),
          "target"_a, "longest"_a, "now"_a, "seed"_a, "interval"_a.noconvert(),
          "next"_a.noconvert(), "Sets interval and next visit of those just visited.");
    m.def("shuffled", &shuffled, "order"_a.noconvert(), "seed"_a, "out"_a.noconvert(),
          "Writes a random order of the same examples.");
}
