"""Evidence of verdicts: the record that a pytest report, the journal and every renderer share.

May not judge or render. Everything in a record is plain JSON data, because xdist carries nothing else. Main type:
`evidence.Evidence`; `lots`, `searches` and `integrity` make that of other verdicts; `multiplicity` counts the verdicts
of a run and the errors expected among them.
"""
