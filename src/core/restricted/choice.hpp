// Which methods of the restricted problem a loss has, by name. The table is in methods.hpp, which
// brings the code of all of them: only choice.cpp includes it.
#pragma once

#include <string>
#include <vector>

#include "losses/any_loss.hpp"
#include "restricted/method.hpp"

namespace pm {

// The default first.
std::vector<std::string> method_names(const AnyLoss& loss);

// False: there is no such method for this loss. nullptr: the loss's own.
template <class T>
bool find_method(const AnyLoss& loss, const std::string& name, Method<T>& found);

}  // namespace pm
