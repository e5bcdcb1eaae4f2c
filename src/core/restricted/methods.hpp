// The methods a solver may choose from, per loss: the one place that lists them.
//
// The first of a loss is its default. nullptr: the loss's own (losses/).
#pragma once

#include <cmath>

#include "losses/table.hpp"
#include "restricted/active_set.hpp"
#include "restricted/fixed_point.hpp"
#include "restricted/frank_wolfe.hpp"
#include "restricted/greedy.hpp"
#include "restricted/simplex_bisection.hpp"
#include "restricted/simplex_condat.hpp"
#include "restricted/simplex_pivot.hpp"
#include "restricted/simplex_sort.hpp"
#include "restricted/smo.hpp"
#include "restricted/walrus.hpp"

namespace pm {

template <class Simplex>
struct Exact : Simplex {
    static constexpr double own_tolerance = 0;
};

struct Bisection : SimplexBisection {
    static constexpr double own_tolerance = 1e-3;  // of Blondel's experiments
};

template <class T>
T solve_walrus(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    list_all(r, block, work);
    const double t = walrus_threshold(work.v.data(), block.count, r.c, work.values);
    block.gather(r.b, r.padded, T(t));
    block.clip(t, r.c);
    return T(t);
}

template <class T>
T solve_greedy(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    constexpr double own_tolerance = 1e-4;
    constexpr std::int64_t max_steps = 1000;
    list_all(r, block, work);
    const double size = std::min(r.c, double(vector_max(r.b, r.padded)));  // p is no larger
    greedy_solve(work.v.data(), block.count, r.c, work.q.data(),
                 r.tolerance(own_tolerance) * std::max(size, 0.0), max_steps);
    keep_positive(block, work);
    return r.guess;
}

// Top-k beta: without the bound on the sum it is a Weston-Watkins problem; where that exceeds the
// bound, a knapsack problem (Lapin 2015, section 4.3; Kiwiel 2008).
template <class T>
T solve_variable_fixing(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    list_all(r, block, work);
    double t = walrus_threshold(work.v.data(), block.count, r.cap, work.values);
    if (t > r.c && block.count > std::lround(r.c / r.cap)) {
        work.knapsack.resize(block.count);
        for (int e = 0; e < block.count; ++e) {
            work.knapsack.v[e] = double(work.v[e]);
            work.knapsack.u[e] = r.cap;
        }
        t = knapsack_threshold(work.knapsack.v.data(), work.knapsack.u.data(), block.count, 0.0,
                               r.c, work.knapsack);
    }
    for (int e = 0; e < block.count; ++e)
        work.q[e] = T(std::clamp(double(work.v[e]) - t, 0.0, r.cap));
    keep_positive(block, work);
    block.scale_to(r.c);
    return T(t);
}

template <class T>
struct MethodEntry {
    const char* loss;
    const char* name;
    Method<T> solve;
};

template <class T>
inline constexpr MethodEntry<T> kMethods[] = {
    {CrammerSinger::name, "newton", nullptr},
    {CrammerSinger::name, "sort", solve_on_simplex<Exact<SimplexSort>, T>},
    {CrammerSinger::name, "pivot", solve_on_simplex<Exact<SimplexPivot>, T>},
    {CrammerSinger::name, "condat", solve_on_simplex<Exact<SimplexCondat>, T>},
    {CrammerSinger::name, "bisection", solve_on_simplex<Bisection, T>},
    {CrammerSinger::name, "fixed_point", solve_on_simplex<FixedPoint, T>},
    {CrammerSinger::name, "active_set", solve_on_simplex<ActiveSet, T>},
    {CrammerSinger::name, "two_variables", solve_on_simplex<TwoVariables, T>},
    {CrammerSinger::name, "smo", solve_on_simplex<Smo, T>},
    {CrammerSinger::name, "frank_wolfe", solve_on_simplex<FrankWolfe, T>},
    {WestonWatkins::name, "newton", nullptr},
    {WestonWatkins::name, "walrus", solve_walrus<T>},
    {WestonWatkins::name, "greedy", solve_greedy<T>},
    {WestonWatkins::name, "active_set", solve_violating<T>},
    {TopKAlpha::name, "sort", nullptr},
    {TopKBeta::name, "newton", nullptr},
    {TopKBeta::name, "variable_fixing", solve_variable_fixing<T>},
    {OneVsRest::name, "clip", nullptr},
    {OneVsRestSquared::name, "scale", nullptr},
    {Softmax::name, "newton", nullptr},
    {TopKEntropy::name, "newton", nullptr},
};

}  // namespace pm
