"""The life of a NodeClaim, from launch until somebody asks for its end, and the care of NodePools."""
