"""Things by name that register themselves: a new one is a new file, and no list of names has to be kept."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from threading import RLock
from typing import Generic, TypeVar

from fcdd.errors import FcddError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to what modules of `package` registered under them.

    The modules are imported when a name is first asked for, so a module that nobody else imports still counts.

    >>> DATASETS: Registry[Dataset] = Registry("dataset", "fcdd.data")
    >>> DATASETS.register("fmnist")(dataset)
    """

    def __init__(self, what: str, package: str) -> None:
        """`what` names the things in messages ("dataset"); `package` is the package whose modules register them."""
        self.what, self.package = what, package
        self._known: dict[str, T] = {}
        self._loaded = self._loading = False
        self._lock = RLock()

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator, or a function of one argument, that keeps what it is given under `name`."""

        def keep(value: T) -> T:
            if self._known.setdefault(name, value) is not value:
                raise ValueError(f"there are two of {self.what} {name!r}")
            return value

        return keep

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._known:
            raise UnknownName(f"no {self.what} {name!r}; there are {', '.join(self)}")
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._known))

    def __len__(self) -> int:
        self._load()
        return len(self._known)

    def _load(self) -> None:
        if self._loaded:
            return
        with self._lock:  # another thread waits until all are there
            if self._loaded or self._loading:  # a module that is being imported may ask as well
                return
            self._loading = True
            try:
                for module in pkgutil.iter_modules(import_module(self.package).__path__):
                    import_module(f"{self.package}.{module.name}")
                self._loaded = True
            finally:
                self._loading = False


class UnknownName(FcddError, KeyError):
    """A name that nothing is registered under; the message lists those there are."""

    def __str__(self) -> str:  # a KeyError would show the message in quotes
        return str(self.args[0])
