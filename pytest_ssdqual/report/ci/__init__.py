"""Reports for CI systems: JUnit properties, summary.md, OpenMetrics, and fragments for pytest-html and Allure.

May not compute a figure that the evidence does not have. Text of drives, hosts and specs is escaped for each format. A
failed promise is a ``<failure>``; an inconclusive one, like a failed measurement, is an ``<error>``.
"""
