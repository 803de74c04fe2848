// Objects of Pumice inside tensors: see tokens.cpp.
#pragma once

#include <memory>

#include "framework.hpp"

namespace pumice::nn {
struct ChainRecord;
}

namespace pumice::python {

/// One int64 on the host whose memory owns the record.
nb::object token_of(std::shared_ptr<const nn::ChainRecord> record);
/// UserError where `token` is no such tensor.
std::shared_ptr<const nn::ChainRecord> record_of(nb::handle token);

}   // namespace pumice::python
