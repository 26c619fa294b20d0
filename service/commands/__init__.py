"""The sub-commands of `tailrace`, one module each: `add` describes it to the parser, `run` does it."""
