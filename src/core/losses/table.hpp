// The losses there are: the one place that maps a name to its code.
//
// Whoever needs a loss's code asks std::visit, which does not compile while an alternative is left
// out: a loss cannot be forgotten anywhere.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

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

using AnyLoss =
    std::variant<CrammerSinger, WestonWatkins, TopKAlpha, TopKBeta, OneVsRest, OneVsRestSquared,
                 Softmax, TopKEntropy, Smoothed<CrammerSinger>, Smoothed<WestonWatkins>,
                 Smoothed<TopKAlpha>, Smoothed<TopKBeta>, Smoothed<OneVsRest>>;

// f(std::type_identity<Loss>{}) for every loss, in the order of the table.
template <class F>
void for_each_loss(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (f(std::type_identity<std::variant_alternative_t<I, AnyLoss>>{}), ...);
    }(std::make_index_sequence<std::variant_size_v<AnyLoss>>{});
}

template <class Loss>
inline constexpr bool is_smoothed = requires(const Loss& loss) { loss.gamma; };

inline AnyLoss make_loss(const std::string& name, const LossParameters& parameters) {
    AnyLoss found;
    bool known = false;
    for_each_loss([&]<class Loss>(std::type_identity<Loss>) {
        if (name != Loss::name || is_smoothed<Loss> != (parameters.smoothing > 0)) return;
        if (!takes_margins<Loss> && parameters.margins != nullptr)
            throw std::invalid_argument(name + " has no margins between classes");
        found = Loss::make(parameters);
        known = true;
    });
    if (!known) throw std::invalid_argument("unknown loss: " + name);
    return found;
}

inline const char* name_of(const AnyLoss& loss) {
    return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::name; }, loss);
}

// The loss while there are only so many wrong classes.
template <class Loss>
Loss limited_to(const Loss& loss, int wrong) {
    if constexpr (requires { loss.limited(wrong); })
        return loss.limited(wrong);
    else
        return loss;
}
inline AnyLoss limited_to(const AnyLoss& any, int wrong) {
    return std::visit([&](const auto& loss) { return AnyLoss(limited_to(loss, wrong)); }, any);
}

}  // namespace pm
