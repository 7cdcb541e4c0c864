"""Hides what the policy of a store names, before anything of a profile is written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from proton_bench.errors import UsageError
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.metrics.metric import ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.store.policy.policy import Kind, Policy

__all__ = ["KEY_VARIABLE", "Privacy"]

KEY_VARIABLE = "PROTON_BENCH_STORE_KEY"
_LEAST_KEY_BYTES, _HASH_BYTES = 16, 8
_HOST_KEYS = frozenset({"host", "uuid"})
# Texts of the provenance that say nothing about people or their files. All others may.
_VERSIONS = ("proton_bench", "python", "torch", "triton", "numpy", "cuda", "hip")
_HARMLESS = {
    *((name,) for name in (*_VERSIONS, "backend", "mode", "context", "hook", "system")),
    *(("git", name) for name in ("revision", "branch")),
    *(
        (gpus, name)
        for gpus in ("gpus_at_start", "gpus_at_end")
        for name in ("name", "driver", "ecc", "mig")
    ),
}


@dataclass(frozen=True, slots=True)
class Privacy:
    """Hides texts. Equal texts have equal hashes in all stores with the same key.

    Attributes:
        policy: What is hidden.
        key: Secret; without it, hashes of guesses would reveal the texts.
    """

    policy: Policy
    key: bytes = b""

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """Return the privacy of a policy, with the key of the environment.

        Raises:
            UsageError: Something is hashed, and there is no key or a short one.
        """
        secret = os.environb.get(KEY_VARIABLE.encode(), b"") if policy.hash else b""
        if policy.hash and len(secret) < _LEAST_KEY_BYTES:
            raise UsageError(
                f"the policy of the store hashes {', '.join(sorted(policy.hash))}, which needs a "
                f"key: set {KEY_VARIABLE} to a secret of at least {_LEAST_KEY_BYTES} bytes, the "
                "same for all who add"
            )
        return cls(policy, hashlib.blake2b(secret).digest())

    def text(self, kind: Kind, text: str) -> str:
        """Return what is stored of a text: itself, its hash, or ""."""
        if kind in self.policy.drop:
            return ""
        if kind not in self.policy.hash or not text:
            return text
        content = text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=_HASH_BYTES, key=self.key)
        return f"#{digest.hexdigest()}"

    def profile(self, profile: Profile) -> Profile:
        """Return a profile without what is hidden.

        Rows whose names are dropped are named by their kind, and keep their places in the tree.
        """
        hidden = self.policy.hash | self.policy.drop
        if Kind.NAMES in hidden:
            profile = self._without_names(profile)
        if hidden - {Kind.NAMES}:
            facts = self._without_texts(profile.provenance.to_plain(), ())
            profile = replace(profile, provenance=Provenance(facts))
        return profile

    def _without_names(self, profile: Profile) -> Profile:
        def hide(text: str) -> str:
            return self.text(Kind.NAMES, text)

        strings, frames = tuple(map(hide, profile.strings)), profile.frames
        if Kind.NAMES in self.policy.drop:
            strings, frames = KIND_NAMES, profile.kinds.astype(frames.dtype)
        columns = {
            name: replace(column, strings=tuple(map(hide, column.strings)))
            if column.kind is ValueKind.STR
            else column
            for name, column in profile.columns.items()
        }
        variants = tuple(
            replace(
                each,
                signature=hide(each.signature),
                raw_name=hide(each.raw_name),
                config=hide(each.config),
            )
            for each in profile.variants
        )
        uses = tuple(
            use if use.scope is None else replace(use, scope=hide(use.scope))
            for use in profile.device_use
        )
        return replace(
            profile,
            strings=strings,
            frames=frames,
            columns=columns,
            variants=variants,
            device_use=uses,
        )

    def _without_texts(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return a value of the provenance without what is hidden.

        Args:
            value: The value.
            path: Keys of the maps that it is in.
        """
        if isinstance(value, Mapping):
            return {key: self._without_texts(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self._without_texts(each, path) for each in value]
        if not isinstance(value, str) or path in _HARMLESS:
            return value
        return self.text(Kind.HOSTS if path[-1] in _HOST_KEYS else Kind.COMMANDS, value)
