"""The `rules` author: services from specs without any language model."""

from compoworld_core.synthesis.rules.author import RulesAuthor

__all__ = ["RulesAuthor"]
