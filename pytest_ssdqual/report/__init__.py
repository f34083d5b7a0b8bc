"""Everything that a run leaves behind: run folder, evidence, pages, tables, charts, comparisons.

May not touch a machine under test, and may not judge: outcomes come from `qual.verdict`. Renderers read the run folder
and write text; what they show is data, never markup. Main types: `evidence.evidence.Evidence` and
`run_folder.reader.RunReader`.
"""
