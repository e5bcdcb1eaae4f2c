#include "restricted/choice.hpp"

#include <string_view>

#include "restricted/methods.hpp"

namespace pm {

namespace {

// Only the losses' own methods know of a curved conjugate.
template <class T>
bool solves(const MethodEntry<T>& entry, const AnyLoss& loss) {
    const bool flat = std::visit([](const auto& one) { return one.flat; }, loss);
    return std::string_view(entry.loss) == name_of(loss) && (flat || entry.solve == nullptr);
}

}  // namespace

std::vector<std::string> method_names(const AnyLoss& loss) {
    std::vector<std::string> names;
    for (const auto& entry : kMethods<double>)
        if (solves(entry, loss)) names.emplace_back(entry.name);
    return names;
}

template <class T>
bool find_method(const AnyLoss& loss, const std::string& name, Method<T>& found) {
    for (const auto& entry : kMethods<T>) {
        if (!solves(entry, loss) || name != entry.name) continue;
        found = entry.solve;
        return true;
    }
    return false;
}

template bool find_method(const AnyLoss&, const std::string&, Method<float>&);
template bool find_method(const AnyLoss&, const std::string&, Method<double>&);

}  // namespace pm
