"""The validation of a plan: errors and warnings with their places, found before anything starts.

A module holds the problems of one kind; `check` asks for all of them.
"""
