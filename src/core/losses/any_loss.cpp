#include "losses/any_loss.hpp"

#include <stdexcept>

#include "losses/table.hpp"

namespace pm {

LossPointer make_loss(const std::string& name, const LossParameters& parameters) {
    LossPointer found;
    for_each_loss([&]<class Loss>(std::type_identity<Loss>) {
        if (name != Loss::name || is_smoothed<Loss> != (parameters.smoothing > 0)) return;
        if (!takes_margins<Loss> && parameters.margins != nullptr)
            throw std::invalid_argument(name + " has no margins between classes");
        found = std::make_shared<const AnyLoss>(Loss::make(parameters));
    });
    if (found == nullptr) throw std::invalid_argument("unknown loss: " + name);
    return found;
}

LossPointer limited_to(const AnyLoss& any, int wrong) {
    return std::visit(
        [&]<class Loss>(const Loss& loss) {
            if constexpr (requires { loss.limited(wrong); })
                return std::make_shared<const AnyLoss>(loss.limited(wrong));
            else
                return std::make_shared<const AnyLoss>(loss);
        },
        any);
}

bool has_margins_for(const AnyLoss& any, int n_classes) {
    return std::visit(
        [&]<class Loss>(const Loss& loss) {
            if constexpr (takes_margins<Loss>)
                return loss.unit_margins() || loss.table->n_classes() >= n_classes;
            else
                return true;
        },
        any);
}

}  // namespace pm
