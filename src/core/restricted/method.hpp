// What a selectable method of the restricted problem sees and returns.
//
// The losses have a default of their own (losses/). Every other method is a function
// of this signature and a line in methods.hpp; an indirect call per visit is all it costs.
#pragma once

#include <cstdint>
#include <vector>

#include "restricted/block.hpp"
#include "restricted/knapsack.hpp"
#include "restricted/simplex.hpp"

namespace pm {

template <class T>
struct Restricted {
    const T* b;  // -infinity where there is no class
    const T* p;  // the block as it stands, in the same places
    int padded;
    double c;
    double cap;  // the loss's bound on a single p
    double tol;  // negative: the method's own
    T guess;     // threshold of the last visit

    double tolerance(double own) const { return tol < 0 ? own : tol; }
};

// Scratch of all methods; one per thread.
template <class T>
struct MethodWork {
    std::vector<T> v, q;
    std::vector<double> values;
    SimplexWork<T> simplex;
    KnapsackWork knapsack;

    void resize(int n) {
        if (static_cast<int>(v.size()) >= n) return;
        v.resize(n);
        q.resize(n);
    }
};

// Leaves the new p, sparse, in the block; returns a threshold (or the guess where there is none).
template <class T>
using Method = T (*)(const Restricted<T>&, Block<T>&, MethodWork<T>&);

// Lists the classes in block.classes with their b in work.v and their p in work.q.
template <class T>
void list_all(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    work.resize(r.padded + 1);
    block.count = 0;
    for (int j = 0; j < r.padded; ++j) {
        if (r.b[j] == -kInfinity<T>) continue;
        block.classes[block.count] = j;
        work.v[block.count] = r.b[j];
        work.q[block.count++] = r.p[j];
    }
}

// Takes over work.q for the listed classes, without the zeros.
template <class T>
void keep_positive(Block<T>& block, const MethodWork<T>& work) {
    int kept = 0;
    for (int e = 0; e < block.count; ++e) {
        block.classes[kept] = block.classes[e];
        block.p[kept] = work.q[e];
        kept += work.q[e] > T(0);
    }
    block.count = kept;
}

}  // namespace pm
