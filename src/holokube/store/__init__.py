"""Versioned objects in memory: watch, history window, snapshot, durability.

Start reading in ``store.py``; ``watch.py`` brings events to readers, ``commit.py`` says what "durable" means.
"""

from holokube.store.journal import Journal, SqliteJournal
from holokube.store.store import Store
from holokube.store.values import EventType, Page, Stored, StoreEvent
from holokube.store.watch import Watch

__all__ = ["EventType", "Journal", "Page", "SqliteJournal", "Store", "StoreEvent", "Stored", "Watch"]
