"""Installers learn how to reach their registry, and nothing else of what this process was told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compoworld_core.specs.sources import packages
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.packages import Package, installed


def test_an_installer_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\nenv > {told}\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("MODELS_KEY", "sk-canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("npm_config_registry", "http://registry.example")

    with pytest.raises(ServerFailure), installed(Package("npx", "nothing-of-the-kind", "1.0.0"), keep=False):
        pass

    environment = told.read_text().splitlines()
    assert {"HTTPS_PROXY=http://proxy.example:3128", "npm_config_registry=http://registry.example"} <= set(environment)
    assert "npm_config_ignore_scripts=true" in environment
    assert not [line for line in environment if "sk-canary" in line]


def test_what_an_image_brings_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = tmp_path / "brought" / "npx" / "@somebody%2Fserver@1.2.3"
    module = brought / "node_modules" / "@somebody" / "server"
    module.mkdir(parents=True)
    (module / "package.json").write_text(json.dumps({"version": "1.2.3", "bin": "main.js"}))
    monkeypatch.setattr(packages, "BROUGHT", tmp_path / "brought")

    with installed(Package("npx", "@somebody/server", "1.2.3"), keep=True) as launch:
        assert launch.readable[packages.INSIDE] == brought
