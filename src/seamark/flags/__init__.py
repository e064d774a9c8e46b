"""The flags surface: manifests of feature flags, their versions, and what clients are told of them."""
