"""Custom resources: serving what CustomResourceDefinitions describe."""
