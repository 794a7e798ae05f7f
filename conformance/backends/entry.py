"""What a system's folder says of a backend that it offers."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Backends", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A registered backend.

    Attributes:
        profile: the profile that it claims.
        library: the distribution that it adapts.
        description: a few words.
        extra: the extra of this project that installs the library; empty where it is always there.
        adapter: where its operations are more than its answers say, the module, from the folder of the systems, whose
            ``load(name)`` imports the library and gives ``partial(Backend, ...)``, all but what stands here and the
            functions.
        imports: else the module that is imported first, so that it fails once; with ``torchvision`` where that one is
            imported too, which has to be helped where its compiled side does not load.
        path: where its operations follow from its answers, ``module:function`` that says which path really ran.
        answers: the backend whose ``ANSWERS`` it gives, where that is not itself.
        swap: of those answers, the module that they call, and its drop-in replacement, which is called in its place.
        lacks: as of ``Backend``.
    """

    profile: str
    library: str
    description: str
    extra: str = ""
    adapter: str = ""
    imports: str = ""
    torchvision: bool = False
    path: str = ""
    answers: str = ""
    swap: tuple[str, str] | None = None
    lacks: tuple[str, ...] = ()


Backends = Mapping[str, Entry]
