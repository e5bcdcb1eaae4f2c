// A loss, whichever it is, for those who need none of its code: nothing that includes this file,
// and not the losses themselves (table.hpp), is compiled again when a loss changes.
#pragma once

#include <memory>
#include <string>

namespace pm {

class MarginTable;
struct AnyLoss;  // one of those in table.hpp
using LossPointer = std::shared_ptr<const AnyLoss>;

// Everything that any loss may be made from; a loss takes what it knows.
struct LossParameters {
    int top_k = 0;
    double smoothing = 0;
    std::shared_ptr<const MarginTable> margins = nullptr;
};

LossPointer make_loss(const std::string& name, const LossParameters& parameters);

// The loss while there are only so many wrong classes.
LossPointer limited_to(const AnyLoss& loss, int wrong);

// Whether a loss has margins for so many classes.
bool has_margins_for(const AnyLoss& loss, int n_classes);

}  // namespace pm
