"""The run folder: records, transcript, manifest, raw files and their digests, written while the run happens.

Lines are only appended and files only added, so that everything written before a crash or a full disk stays readable.
Folder and files belong to the user alone; readers accept damaged folders and refuse other schemas. Main types:
`journal.Journal` (writes) and `reader.RunReader` (reads). The format is in docs/run-folder.md.
"""
