"""What charts are drawn with: the chart of a page, a figure of matplotlib as SVG, its scales and its colours.

matplotlib is imported where it draws and nowhere else. Main types: `chart.Chart`, `figure.Plate`.
"""
