"""The certificate of a run: one printed page for the files of buyer and seller.

``certificate`` is its content, ``pdf`` draws it. It claims a pass only for a run that was for acceptance, complete and
decided, and whose files are as SHA256SUMS has them.
"""
