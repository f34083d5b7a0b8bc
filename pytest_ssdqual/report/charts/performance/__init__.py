"""Charts of what was measured against the parameters of workload and array: width, queue depth, size, mix, profile."""
