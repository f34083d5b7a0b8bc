"""Many run folders together: they are read, and their figures are a table for other programs.

It only reads run folders; one that is damaged or foreign costs a sentence, never the others. Its main type is
``figure_table.FigureRow``.
"""
