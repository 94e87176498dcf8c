"""The client, noun by noun."""
