"""eKuiper's windows, which gather the rows of a stream before they are grouped: an operator for each shape, and what
these share. The plan calls the family stream windows."""
