"""Pages of a run and of a fleet, and small pages of comparisons, as single HTML files.

Everything on a page was read from the run folder and is escaped by the template engine; only the package's own style
sheet, script and drawings are inserted as markup. A page loads nothing from elsewhere, and its
Content-Security-Policy enforces that.
"""
