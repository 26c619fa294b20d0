"""Windows that group rows: their shapes, the slices they are made of, and the operators over them."""
