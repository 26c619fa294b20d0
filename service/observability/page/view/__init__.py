"""The document as HTML: one module a part of the page. Every text is escaped where it becomes markup, in `markup`."""
