"""DEFINE: documents of every kind, read strictly and written out again."""
