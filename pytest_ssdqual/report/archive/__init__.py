"""Many run folders together: the table of their figures for other programs, and the view of the dashboard.

It only reads run folders; one that is damaged or foreign costs a sentence, never the others. Its main type is
``figure_table.FigureRow``.
"""
