"""Who may have written a folder or a file: asked of other users, where the tests run as root."""

import contextlib
import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from numpy_dist.backends import store as stores
from numpy_dist.backends import trust
from numpy_dist.backends.store import Store

KEY = "a" * 64
SOMEBODY, ANOTHER = 54321, 54322
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def trusted(path, **options):
    """Whether a folder is opened."""
    try:
        os.close(trust.open_folder(str(path), **options))
    except trust.Untrusted:
        return False
    return True


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "around" / "kernels"), 1 << 20)
    made.write(KEY, b"code")
    return made


def around(store):
    return os.path.dirname(store.directory)


@contextlib.contextmanager
def somebody():
    """Another user, who is not root."""
    os.seteuid(SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o757, 0o722])
def test_a_folder_that_others_can_write_is_refused(store, mode, monkeypatch):
    monkeypatch.setattr(trust, "_is_private", lambda group, user: False)
    os.chmod(store.directory, mode)
    assert store.read(KEY) is None
    assert f"others can write the folder {store.directory}" in store.refusal()
    with pytest.raises(trust.Untrusted):
        store.write(KEY, b"code")
    os.chmod(store.directory, 0o755)
    assert store.read(KEY) == b"code"


@pytest.mark.parametrize(
    ("mode", "good"), [(0o777, False), (0o775, False), (0o1777, True), (0o755, True), (0o711, True)]
)
def test_a_folder_is_as_safe_as_what_it_lies_in(store, mode, good, monkeypatch):
    monkeypatch.setattr(trust, "_is_private", lambda group, user: False)
    os.chmod(around(store), mode)
    assert (store.read(KEY) is not None) == good
    assert (store.refusal() is None) == good
    assert trusted(store.directory, ancestors=False)


def test_the_private_folder_of_a_user_who_shares_a_group_with_nobody(store, monkeypatch):
    monkeypatch.setattr(trust, "_only_ours", lambda folder, group: group == os.getegid())
    os.chmod(store.directory, 0o775)
    assert store.read(KEY) == b"code"
    os.chmod(store.directory, 0o777)
    assert store.read(KEY) is None


def test_groups_are_private_by_their_names_and_members(monkeypatch):
    users = {1000: SimpleNamespace(pw_gid=1000, pw_name="ann"), 1001: SimpleNamespace(pw_gid=100, pw_name="bob")}
    groups = {1000: SimpleNamespace(gr_name="ann", gr_mem=[]), 100: SimpleNamespace(gr_name="users", gr_mem=[])}
    monkeypatch.setattr(trust.pwd, "getpwuid", users.__getitem__)
    monkeypatch.setattr(trust.grp, "getgrgid", groups.__getitem__)
    private = trust._is_private.__wrapped__
    assert private(1000, 1000)
    assert not private(100, 1001) and not private(100, 1000) and not private(7, 1000) and not private(1000, 7)
    groups[1000].gr_mem.append("ann")
    assert private(1000, 1000)
    groups[1000].gr_mem.append("bob")
    assert not private(1000, 1000)


def test_roots_group_is_not_private(store, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not trust._only_ours(0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no group is taken for private")
def test_access_lists_are_looked_at_where_the_group_is_private(monkeypatch):
    """The mode's bits of the group stand for all entries of the list."""
    monkeypatch.setattr(trust, "_is_private", lambda group, user: True)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user or SOMEBODY)
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"user:bob:rwx")
    assert not trust._only_ours(3, 1000)

    def without(path, name):
        raise OSError(errno.ENODATA, "no list")

    monkeypatch.setattr(os, "getxattr", without)
    assert trust._only_ours(3, 1000)


def test_a_link_of_ours_may_lead_to_the_folder(store, tmp_path):
    os.symlink("around/../around", tmp_path / "relative")
    os.symlink(store.directory, tmp_path / "absolute")
    for way in (tmp_path / "relative" / "kernels", tmp_path / "absolute"):
        assert Store(str(way), 1 << 20).read(KEY) == b"code"
    os.chmod(around(store), 0o777)
    assert not trusted(tmp_path / "relative" / "kernels") and not trusted(tmp_path / "absolute")


def test_links_that_lead_nowhere_are_errors(tmp_path):
    os.symlink("itself", tmp_path / "itself")
    os.symlink("nothing", tmp_path / "dangling")
    for name, number in (("itself", errno.ELOOP), ("dangling", errno.ENOENT)):
        with pytest.raises(OSError) as caught:
            trust.open_folder(str(tmp_path / name))
        assert caught.value.errno == number
    assert trusted(tmp_path / "dangling", make=True) and (tmp_path / "nothing").is_dir()


def test_no_descriptor_is_left(store, tmp_path):
    os.symlink(store.directory, tmp_path / "link")
    before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    for mode in (0o755, 0o777):
        os.chmod(store.directory, mode)
        for path in (store.directory, tmp_path / "link", tmp_path / "nothing", store.directory + "/a/b"):
            with contextlib.suppress(OSError):
                os.close(trust.open_folder(str(path)))
        store.read(KEY)
    assert len(before) == len(os.listdir("/proc/self/fd") if before else [])


@root
def test_a_folder_of_somebody_else_is_refused(store):
    os.chown(store.directory, SOMEBODY, -1)
    assert store.read(KEY) is None and f"belongs to user {SOMEBODY}" in store.refusal()
    os.chown(store.directory, 0, -1)
    os.chown(around(store), SOMEBODY, -1)
    assert store.read(KEY) is None and f"{around(store)} belongs to user {SOMEBODY}" in store.refusal()
    assert trusted(store.directory, ancestors=False)


@root
def test_root_makes_nothing_in_the_home_of_a_user(tmp_path):
    """Else root's folder would be in that user's way."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SOMEBODY, -1)
    made, said = Store.open(str(home / ".cache" / "kernels"), 1 << 20)
    assert f"{home} belongs to user {SOMEBODY}" in said and os.listdir(home) == []
    made.write(KEY, b"code")
    assert made.read(KEY) == b"code" and made.also is None


@root
def test_a_link_of_somebody_else_is_refused(store, tmp_path):
    os.chmod(tmp_path, 0o1777)
    link = tmp_path / "link"
    os.symlink(store.directory, link)
    os.chown(link, SOMEBODY, -1, follow_symlinks=False)
    assert not trusted(link) and not trusted(link, make=True)


@root
def test_a_file_of_somebody_else_is_refused_and_made_anew(store):
    os.chown(os.path.join(store.directory, KEY + stores.KERNEL), SOMEBODY, -1)
    assert store.read(KEY) is None and f"belongs to user {SOMEBODY}" in store.refusal()
    store.write(KEY, b"anew")
    assert store.read(KEY) == b"anew"


@root
def test_users_do_not_load_each_others_kernels_but_roots(tmp_path):
    tmp_path.chmod(0o755)
    base = tmp_path.parent
    modes = {}
    while base != base.parent and base.stat().st_mode & 0o5 != 0o5:  # pytest's folders are for one user only
        modes[base] = base.stat().st_mode
        base.chmod(modes[base] | 0o55)
        base = base.parent
    try:
        site, users = tmp_path / "site", tmp_path / "users"
        site.mkdir(), users.mkdir()
        users.chmod(0o1777)
        Store(str(site), 1 << 20).write(KEY, b"root's")
        with somebody():
            own = Store(str(users / "own"), 1 << 20)
            own.write(KEY, b"own")
            assert own.read(KEY) == b"own"
            os.chmod(own.directory, 0o755)
            assert Store(str(site), 1 << 20).read(KEY) == b"root's"
            made, said = Store.open(str(site), 1 << 20)  # read-only: what is there is used
            assert "CACHE_DIR" in said and made.read(KEY) == b"root's"
            del made
        assert own.read(KEY) is None and "belongs to user" in own.refusal()  # root
        os.seteuid(ANOTHER)
        try:
            another = Store(own.directory, 1 << 20)
            assert another.read(KEY) is None and f"belongs to user {SOMEBODY}" in another.refusal()
            made, said = Store.open(own.directory, 1 << 20)
            assert f"belongs to user {SOMEBODY}" in said and made.also is None and made.read(KEY) is None
            del made
        finally:
            os.seteuid(0)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


SWAP = """
import os, sys
while True:
    for way in ("good", "bad"):
        os.symlink(way, sys.argv[1] + "/new")
        os.replace(sys.argv[1] + "/new", sys.argv[1] + "/link")
"""


def test_what_was_checked_is_what_is_read(tmp_path):
    """A link leads to a good folder and to a bad one in turn: none of the bad one's files is ever read."""
    for way in ("good", "bad"):
        Store(str(tmp_path / way), 1 << 20).write(KEY, way.encode())
    os.chmod(tmp_path / "bad", 0o777)
    os.symlink("good", tmp_path / "link")
    store = Store(str(tmp_path / "link"), 1 << 20)
    swapping = subprocess.Popen([sys.executable, "-S", "-c", SWAP, str(tmp_path)])
    try:
        found = [store.read(KEY) for _ in range(1000)]
    finally:
        swapping.kill()
        swapping.wait(60)
    assert set(found) <= {b"good", None} and b"good" in found


def test_a_file_takes_the_memory_of_its_bytes(tmp_path):
    (tmp_path / "kernel").write_bytes(b"code")
    (tmp_path / "kernel").chmod(0o600)
    folder = trust.open_folder(str(tmp_path))
    try:
        assert trust.read_file(folder, "kernel", 1 << 60)[0] == b"code"  # more than there is
    finally:
        os.close(folder)
