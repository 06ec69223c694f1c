"""DEFINE: values with a grammar of their own: records, certificates and their chains."""
