// Layers own parameters that names lead to: a copy of a layer would share some and not others.
// fails with: deleted .*(Activate|Module)
#include <pumice/nn/activation.hpp>

void work(const pumice::nn::Module& layer);

void copies(const pumice::nn::Activate& layer) {
#ifdef PUMICE_MISUSE
  const pumice::nn::Activate copy = layer;
#else
  const pumice::nn::Activate& copy = layer;
#endif
  work(copy);
}
