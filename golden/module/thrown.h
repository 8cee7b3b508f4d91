// Classes that C++ may throw: derived from a standard exception as the only base, as the second base behind another, and as a
// virtual base. `foreign.cc` of this folder throws them, and so does `tests/throws.cc`.

#pragma once

#include <stdexcept>

struct Derived : std::runtime_error {
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override { return "derived says so"; }
};

struct Ballast {
  virtual ~Ballast() = default;
  long weight[3] = {1, 2, 3};
};

struct Behind : Ballast, Derived {
  Behind() : Derived("") {}
};

struct Virtual : Ballast, virtual std::exception {
  const char* what() const noexcept override { return "virtual says so"; }
};
