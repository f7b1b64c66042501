"""Goods and orders."""
