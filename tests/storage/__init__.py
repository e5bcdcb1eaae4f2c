"""Archives, digests and files that are written whole or not at all."""
