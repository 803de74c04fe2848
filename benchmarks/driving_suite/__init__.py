"""The parts of benchmarks/driving.py: workloads, inputs, contestants, what is measured, and how it is told."""
