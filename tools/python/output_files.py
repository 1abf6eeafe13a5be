# SPDX-License-Identifier: Apache-2.0
"""Files that scripts write: checked before the work, written under a temporary name and then renamed."""
import contextlib
import errno
import os
import pathlib
import sys


def is_special(path):
    """A device, a pipe or a socket, or a name of a file that is open, such as /dev/stdout, to whatever it leads."""
    begin, name = os.path.split(os.path.abspath(path))
    begin = f"{begin}/"
    if begin.startswith(("/dev/fd/", "/proc/")) or (begin == "/dev/" and name in ("stdin", "stdout", "stderr")):
        return not os.path.isdir(path)
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _names(path):
    """The file that is written, of a link its target, and its temporary name."""
    target = os.path.realpath(path)
    return target, f"{target}.{os.getpid()}.tmp"


def check(path, option, force=False, inputs=()):
    """Raises ValueError where the file that `option` names cannot be written, is one of `inputs`, or is there and not
    to be overwritten."""
    if os.path.isdir(path) or str(path).endswith("/"):
        raise ValueError(f"{path} is a folder; {option} names a file")
    if is_special(path):
        raise ValueError(f"{path}: it is a device or a pipe; {option} names a file")
    target, temporary = _names(path)
    try:
        with open(temporary, "xb"):
            pass
        os.unlink(temporary)
    except OSError as error:
        folder = os.path.dirname(target)
        hint = f"; create it with mkdir -p {folder}" if error.errno == errno.ENOENT else ""
        raise ValueError(f"{path}: cannot write to folder {folder}: {error.strerror}{hint}") from error
    if os.path.islink(target):  # of links that lead to each other
        raise ValueError(f"{path}: cannot write: {os.strerror(errno.ELOOP)}")
    if not os.path.exists(target):
        return
    for other in inputs:
        if other and os.path.exists(other) and os.path.samefile(target, other):
            raise ValueError(f"{path} is also an input; name another file as {option}")
    if not force:
        raise ValueError(f"{path} exists; --force overwrites it")


@contextlib.contextmanager
def pending(path):
    """A temporary name beside the file, which gets its own name after the block, and the permissions of the one that it
    replaces. If the block fails, nothing of it stays."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    target, temporary = _names(path)
    try:
        yield temporary
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def write_text(path, text):
    """Also to a device or a pipe, as it is; after what is there, if it is an open file."""
    if is_special(path):
        sys.stdout.flush()
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
        return
    with pending(path) as temporary:
        pathlib.Path(temporary).write_text(text, encoding="utf-8")
