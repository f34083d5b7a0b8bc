"""Charts of figures over the course of a run or of a drive's life: time, rounds, capacities written, wear."""
