"""Specifications read from TOML: data sheets, promises, protocols; checked as a whole and converted to base units.

May not measure or judge. pydantic is slow to load, so these modules are imported only when a document is read. Main
types: `Spec` (data sheet and promises of a product, gives a `Limit` for a claim) and `Protocol` (how drives are
conditioned and measured).
"""
