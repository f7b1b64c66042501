"""What is said about models in a configuration, and which part of it decides what they answer.

A model's name and sampling parameters are content: they are part of a stage's key. Where it is served, how fast it may
be asked, what it costs and who pays are not: those fields are left out when a config is dumped, so changing them never
makes finished work stale.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator
from pydantic_core import PydanticCustomError

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.llm.messages import Usage


class Price(Data):
    """US dollars per million tokens."""

    prompt: Decimal = Field(default=Decimal(0), ge=0)
    cached: Decimal | None = Field(
        default=None, ge=0, description="Of prompt tokens in a cache; as others if left out."
    )
    completion: Decimal = Field(default=Decimal(0), ge=0)

    def of(self, usage: Usage) -> Decimal:
        """What answers cost that took so much, in US dollars."""
        cached = self.prompt if self.cached is None else self.cached
        prompt = self.prompt * (usage.prompt_tokens - usage.cached_tokens) + cached * usage.cached_tokens
        return (prompt + self.completion * usage.completion_tokens) / Decimal(10**6)


class Endpoint(Data):
    """One OpenAI-compatible server of a model. Its key comes from a variable or a mounted file, never from here."""

    base_url: str = Field(description="Up to and including `/v1`.")
    key_env: str | None = Field(default=None, description="Environment variable that holds the API key.")
    key_file: str | None = Field(default=None, description="File that holds the API key, such as a mounted secret.")
    weight: float = Field(
        default=1.0, gt=0, description="Share of the requests, relative to the model's other servers."
    )
    concurrency: int = Field(default=64, ge=1, description="Most requests in flight, of each process.")
    requests_per_minute: int | None = Field(default=None, ge=1, description="Most requests begun, by each process.")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="Most tokens, of each process.")
    first_byte_s: float = Field(default=120, gt=0, description="Longest wait for the first byte of an answer.")
    total_s: float = Field(default=600, gt=0, description="Longest time for a whole answer.")

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_web = False
        if not is_web:
            raise PydanticCustomError("contradiction", "is no http(s) URL, such as http://localhost:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise PydanticCustomError("contradiction", "carries credentials or a query; keys go to key_env or key_file")
        return url

    @field_validator("key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise PydanticCustomError("contradiction", "is no name of a variable; the key itself must not stand here")
        return name

    def key(self) -> str | None:
        """The API key; None for a server that needs none.

        Raises:
            InputError: The variable is not set, the file can't be read, or what is there is no key.
        """
        value = self._found_key()
        if value is not None and not (value.isascii() and value.isprintable()):
            place = f"the variable {self.key_env}" if self.key_env else f"the file {self.key_file}"
            raise InputError(f"{self.base_url}: {place} has no key: no header can hold what is there")
        return value

    def _found_key(self) -> str | None:
        if self.key_env is not None:
            value = os.environ.get(self.key_env, "").strip()
            if not value:
                raise InputError(f"{self.base_url}: the environment variable {self.key_env} is not set; it has the key")
            return value
        if self.key_file is not None:
            try:
                value = Path(self.key_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{self.base_url}: the key file {self.key_file} cannot be read: {error}") from None
            if not value:
                raise InputError(f"{self.base_url}: the key file {self.key_file} is empty")
            return value
        return None


_OWN_FIELDS: Final = {"model", "messages", "tools", "stream", "stream_options", "n"}
"""Fields of a request that nobody else may set: one answer is asked for, in a form that can be read."""


class ModelConfig(Data):
    """A model, and where it is served."""

    model: str = Field(description="The name that its servers know it by.")
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, description="Longest answer.")
    extra: dict[str, JsonValue] = Field(default_factory=dict, description="Further fields of the request body.")
    send_reasoning: bool = Field(default=False, description="Show the model what it thought in earlier messages.")
    stream: bool = Field(default=True, exclude=True, description="Have answers streamed, so that dead servers show.")
    price: Price = Field(default=Price(), exclude=True)
    endpoints: tuple[Endpoint, ...] = Field(default=(), exclude=True, description="Its servers.")

    @field_validator("extra")
    @classmethod
    def _leaves_ours(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if taken := sorted(_OWN_FIELDS & extra.keys()):
            raise PydanticCustomError("contradiction", "{problem}", {"problem": f"may not set {', '.join(taken)}"})
        return extra

    def parameters(self) -> dict[str, Any]:
        """The fields of a request that decide the answer, beside messages and tools."""
        own = self.model_dump(include={"model", "temperature", "top_p", "max_tokens"}, exclude_none=True)
        return own | self.extra


class Budget(Data):
    """The most that a stage, or one thing in it, may take. What is left out is not limited."""

    usd: Decimal | None = Field(default=None, ge=0, description="US dollars.")
    tokens: int | None = Field(default=None, ge=0, description="Prompt and completion tokens together.")
    seconds: float | None = Field(default=None, gt=0, description="Wall time.")

    def part(self, parts: int) -> Budget:
        """An equal part of it; time is not divided, for the parts may run side by side."""
        return Budget(
            usd=None if self.usd is None else self.usd / parts,
            tokens=None if self.tokens is None else self.tokens // parts,
            seconds=self.seconds,
        )


class LlmConfig(Data):
    """The models that stages may name."""

    models: dict[str, ModelConfig] = Field(default_factory=dict, description="By the names that stages use.")


class ModelUser(Data):
    """A stage's config that names models.

    Attributes:
        models: The named models themselves, taken from `llm.models`: what a person writes here is refused.
    """

    budget: Budget = Field(default=Budget(), exclude=True, description="The most that the stage may take.")
    models: dict[str, ModelConfig] = Field(default_factory=dict, description="Taken from llm.models.")

    def named(self) -> dict[str, str]:
        """Names of the models that it uses, by the field that names them."""
        return {}

    def with_models(self, models: Mapping[str, ModelConfig]) -> Self:
        """The same config with the models that it names."""
        used = {name: models[name] for name in sorted(self.named().values())}
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, "models": used})
