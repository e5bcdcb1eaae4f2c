#include "sweeps/loss_code.hpp"

namespace pm {

template class Visitor<double>;
template double dual_sum(const AnyLoss&, const Examples<double>&, const ClassRanges<double>&);

}  // namespace pm
