"""What only a GPU shows, in three steps: whether it is right, how fast it is, and what other libraries do there."""
