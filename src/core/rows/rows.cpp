#include "rows/rows.hpp"

namespace pm {

PM_ROW_FUNCTIONS_OF(, float)
PM_ROW_FUNCTIONS_OF(, double)

}  // namespace pm
