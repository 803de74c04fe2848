"""Whether layers wait; pumice.compat.defer_layers sets it."""

defers = True
