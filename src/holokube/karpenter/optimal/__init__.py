"""A planner that looks for the cheapest nodes, and proves how far from the cheapest it may be."""
