"""Detection in series of figures: change points, periods, trends over runs, outliers.

Descriptions for people; verdicts do not use them, except for the write cliff (`change_point`). May not import from
`verdict` or `validity`. One main function a module, which returns a small result type.
"""
