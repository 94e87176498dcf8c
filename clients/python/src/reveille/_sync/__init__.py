# Made by generate.py; a change here is lost with the next one.
"""The client, noun by noun."""
