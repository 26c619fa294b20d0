"""What a plan may not ask for, found before anything starts and said with its place; and what it had better not ask.

A module holds the problems of one kind; `check` asks for all of them.
"""
