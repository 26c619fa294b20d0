"""A node without the columns that nobody reads: what it must see, which calls stay, where its columns are then."""
