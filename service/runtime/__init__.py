"""The interpreter of a program, shared by both runners: what a task does where rows enter, and what a bucket does."""
