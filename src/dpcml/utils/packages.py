"""Installed packages: the version of dpcml, imports of optional dependencies, and imports that are put off."""

from __future__ import annotations

import importlib
import json
from functools import cache
from importlib import metadata
from types import ModuleType
from typing import Any

from dpcml.utils.errors import MissingExtraError


@cache
def version() -> str:
    """Return the version of the installed dpcml package.

    Examples
    --------
    >>> version().count(".") >= 1
    True
    """
    return metadata.version("dpcml")


__version__ = version()


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module; the error for one that is missing or broken names the extra that installs it.

    Parameters
    ----------
    module
        Dotted name of the module.
    extra
        Extra of dpcml that lists the module's package.

    Examples
    --------
    >>> require("json", extra="plots").dumps(1)
    '1'
    >>> require("no_such_module", extra="plots")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.MissingExtraError: no_such_module is not installed: pip install ...[plots]...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        why = "is not installed" if missing else f"cannot be imported ({' '.join(str(error).split())[:200]})"
        raise MissingExtraError(f"{package} {why}: {install_command(extra)}") from None


@cache
def install_command(extra: str) -> str:
    """Return the command that installs an extra, from where dpcml itself was installed: a checkout, a file or an index.

    Examples
    --------
    >>> install_command("serve").startswith("pip install ")
    True
    """
    try:
        origin = json.loads(metadata.distribution("dpcml").read_text("direct_url.json") or "{}")
        url, folder = str(origin["url"]), "dir_info" in origin
    except (KeyError, TypeError, ValueError):  # from an index
        return f"pip install 'dpcml[{extra}]'"
    return f"pip install -e '.[{extra}]' in the checkout" if folder else f"pip install 'dpcml[{extra}] @ {url}'"


def installed(module: str) -> ModuleType | None:
    """Import an optional module that improves on something; None if it is not there.

    Examples
    --------
    >>> installed("json").dumps(1), installed("no_such_module")
    ('1', None)
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None


def gammaln(values: Any) -> Any:
    """Return SciPy's logarithm of the gamma function; its module, a tenth of all imports, is imported only now.

    Examples
    --------
    >>> round(float(gammaln(4.0)), 4)  # log(3!)
    1.7918
    """
    from scipy.special import gammaln as function

    return function(values)
