"""The composition root: the nursery tree of one peer."""
