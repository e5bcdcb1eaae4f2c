// The losses there are: the one place that maps a name to its code.
//
// Whoever needs a loss's code asks std::visit, which does not compile while an alternative is left
// out: a loss cannot be forgotten anywhere.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "losses/any_loss.hpp"
#include "losses/crammer_singer.hpp"
#include "losses/one_vs_rest.hpp"
#include "losses/one_vs_rest_squared.hpp"
#include "losses/smoothed.hpp"
#include "losses/softmax.hpp"
#include "losses/top_k_alpha.hpp"
#include "losses/top_k_beta.hpp"
#include "losses/top_k_entropy.hpp"
#include "losses/weston_watkins.hpp"

namespace pm {

using LossVariant =
    std::variant<CrammerSinger, WestonWatkins, TopKAlpha, TopKBeta, OneVsRest, OneVsRestSquared,
                 Softmax, TopKEntropy, Smoothed<CrammerSinger>, Smoothed<WestonWatkins>,
                 Smoothed<TopKAlpha>, Smoothed<TopKBeta>, Smoothed<OneVsRest>>;

struct AnyLoss : LossVariant {
    using LossVariant::LossVariant;
};

// f(std::type_identity<Loss>{}) for every loss, in the order of the table.
template <class F>
void for_each_loss(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (f(std::type_identity<std::variant_alternative_t<I, LossVariant>>{}), ...);
    }(std::make_index_sequence<std::variant_size_v<LossVariant>>{});
}

template <class Loss>
inline constexpr bool is_smoothed = requires(const Loss& loss) { loss.gamma; };

inline const char* name_of(const AnyLoss& loss) {
    return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::name; }, loss);
}

}  // namespace pm
