"""Controllers: work queues, reconcilers, singletons, leader election, events, health."""
