"""The embedded scheduler: decides with the packing engine where pods go, and binds them."""
