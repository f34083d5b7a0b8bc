"""What charts are drawn with: a chart as data, its forms, a figure of matplotlib as SVG, scales and colours.

matplotlib is imported where it draws and nowhere else. Main types: `plot.Chart`, `plot.Panel`.
"""
