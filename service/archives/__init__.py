"""The Java archives that Tailrace runs with: which they are, what they must contain, and how they get here."""

from service.archives.cache import ensure
from service.archives.listing import Archive, Listing, load

__all__ = ["Archive", "Listing", "ensure", "load"]
