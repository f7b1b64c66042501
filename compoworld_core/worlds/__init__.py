"""Composing services: recipes, worlds that fork and react, and the gateway that agents see."""
