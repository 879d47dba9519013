"""What the autoscaler remembers between turns: what was asked for, what came of it, and who is in disgrace for it."""
