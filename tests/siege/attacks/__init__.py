"""The attacks, by their names. ``guided`` exists if Atheris is installed."""

from __future__ import annotations

from importlib.util import find_spec

from siege.attack import Attack
from siege.attacks.bombs import Bombs
from siege.attacks.disks import Disks
from siege.attacks.endings import Endings
from siege.attacks.guided import Guided
from siege.attacks.kills import Kills
from siege.attacks.names import Names
from siege.attacks.native_readers import NativeReaders
from siege.attacks.readers import Readers, Settings, Stores
from siege.attacks.soak import Soak

ATTACKS: dict[str, type[Attack]] = {
    each.name: each
    for each in (
        *(Readers, Settings, Stores, Bombs),
        *((Guided,) if find_spec("atheris") else ()),
        NativeReaders,
        *(Kills, Endings, Disks, Names, Soak),
    )
}
