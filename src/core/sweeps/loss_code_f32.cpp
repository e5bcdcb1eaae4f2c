#include "sweeps/loss_code.hpp"

namespace pm {

template class Visitor<float>;
template double dual_sum(const AnyLoss&, const Examples<float>&, const ClassRanges<float>&);

}  // namespace pm
