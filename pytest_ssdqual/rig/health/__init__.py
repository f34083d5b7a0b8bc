"""What drives report of themselves: health, what they were built and sold as, temperature, write counters, activity.

It reads; only ``self_test`` starts something, in the drive's own firmware. Main types: ``health.DriveHealth`` and
``smart_answer``, the figures that drives spell differently.
"""
