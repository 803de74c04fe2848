// A matrix that is small enough to know its products by heart.
#pragma once

#include <string>

#include "program.hpp"

namespace pumice::test {

class SmallMatrixTest : public ProgramTest {
 protected:
  /// One row with five entries, two of them in one place; two empty rows.
  std::string matrix() const {
    write_text(path("m.mtx"),
               "%%MatrixMarket matrix coordinate pattern general\n3 4 5\n"
               "2 1\n2 3\n2 3\n2 2\n2 4\n");
    return path("m.mtx");
  }
};

}   // namespace pumice::test
