// Objects of Pumice inside tensors: see tokens.cpp.
#pragma once

#include <memory>

#include "framework.hpp"

namespace pumice::python {

struct ChainRecord;

/// One int64 on the host whose memory owns the record.
nb::object token_of(std::shared_ptr<const ChainRecord> record);
/// UserError where `token` is no such tensor.
std::shared_ptr<const ChainRecord> record_of(nb::handle token);

}   // namespace pumice::python
