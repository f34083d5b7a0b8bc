"""Statistics of measurements: estimates with confidence intervals, and the rules that end a measurement.

May not decide about a product (that is `verdict`) and reads nothing but `measured`, `spec` and `workload`. Every
interval is two-sided and comes from independent rounds, or from cells of visits, never from the number of
I/Os. Main type: `Estimate`; `ConfidenceLevel` says how wide its interval has to be.
"""
