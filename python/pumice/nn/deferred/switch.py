"""Holds the switch that pumice.compat.defer_layers sets: whether layers wait."""

defers = True
