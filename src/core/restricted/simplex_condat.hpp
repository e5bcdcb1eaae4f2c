// Simplex projection by Condat's online filter (Condat 2016, algorithm 1): O(n) in practice.
//
// `listed` are entries that may be positive and rho = (sum of listed - z) / |listed| bounds the
// threshold from below. An entry <= rho is dropped at once; another joins the list, or, when it
// alone gives a better bound, starts a new one and the old list waits for a second look.
#pragma once

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexCondat {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        T* listed = work.room(work.listed, n);
        T* waiting = work.room(work.waiting, n);
        std::int64_t count = 1, parked = 0;
        listed[0] = v[0];
        double rho = double(v[0]) - z;
        const auto visit = [&](T x) {
            const double y = double(x);
            if (!(y > rho)) return;
            rho += (y - rho) / double(count + 1);
            if (rho <= y - z) {
                std::copy_n(listed, count, waiting + parked);
                parked += count;
                count = 0;
                rho = y - z;
            }
            listed[count++] = x;
        };
        std::int64_t j = 1;
        T floor = round_down<T>(rho);
        for (; j + kLanes<T> <= n; j += kLanes<T>) {
            if (greater_mask(v + j, floor) == 0) continue;  // dropped whole
            for (int l = 0; l < kLanes<T>; ++l) visit(v[j + l]);
            floor = round_down<T>(rho);
        }
        for (; j < n; ++j) visit(v[j]);
        for (j = 0; j < parked; ++j) {
            const double y = double(waiting[j]);
            if (!(y > rho)) continue;
            listed[count++] = waiting[j];
            rho += (y - rho) / double(count);
        }
        return shrink(listed, count, z);
    }

  private:
    // Drops what rho excludes until nothing changes; rho anew from the sum in each round, since
    // the running one has gathered rounding.
    template <class T>
    static double shrink(T* listed, std::int64_t count, double z) {
        while (true) {
            double sum = 0;
            for (std::int64_t j = 0; j < count; ++j) sum += double(listed[j]);
            const double rho = (sum - z) / double(count);
            std::int64_t kept = 0;
            for (std::int64_t j = 0; j < count; ++j) {
                const T x = listed[j];
                listed[kept] = x;
                kept += double(x) > rho;
            }
            if (kept == count || kept == 0) return rho;
            count = kept;
        }
    }
};

}  // namespace pm
