"""Settings: the schema, the merge of their sources, and the only file I/O on them."""
