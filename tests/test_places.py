import pytest

from torchdoctor import places


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/env/lib/", "/env/lib"),
        ("/env/bin/../lib/./x", "/env/lib/x"),
        (r"C:\Env\Lib", "c:/env/lib/"),
        (r"C:\a\b\..\c", r"C:\A\C"),
    ],
)
def test_two_spellings_of_one_place_are_the_same(one: str, other: str) -> None:
    assert places.same(one, other)


def test_case_counts_where_it_counts() -> None:
    assert not places.same("/Env", "/env")


def test_inside_is_by_whole_names() -> None:
    assert places.inside("/env/lib/x.so", "/env")
    assert not places.inside("/environment/x.so", "/env")
    assert not places.inside("/env/x.so", "")


def test_names_are_joined_as_the_folder_is_written() -> None:
    assert places.join("/a/", "b", "c") == "/a/b/c"
    assert places.join(r"C:\a", "b") == r"C:\a\b"
    assert places.last(r"C:\a\b.dll") == "b.dll"


def test_the_entries_of_a_variable() -> None:
    assert places.entries("/a:/b:") == ("/a", "/b")
    assert places.entries(r"C:\a;D:\b") == (r"C:\a", r"D:\b")
    assert places.entries(r"C:\a") == (r"C:\a",)
    assert places.entries("") == ()


@pytest.mark.parametrize(
    ("folder", "python"),
    [
        ("/anaconda/envs/a/lib/python3.8/site-packages", "/anaconda/envs/b/bin/python"),
        (r"C:\envs\a\Lib\site-packages", r"C:\Python312\python.exe"),
        ("/opt/venv/lib/python3.12/site-packages", "/usr/bin/python3"),
    ],
)
def test_site_packages_of_another_tree_are_foreign(folder: str, python: str) -> None:
    assert places.foreign(folder, python)


@pytest.mark.parametrize(
    ("folder", "python"),
    [
        ("/usr/lib/python3/dist-packages", "/usr/bin/python3"),
        ("/usr/local/lib/python3.12/dist-packages", "/usr/bin/python3"),
        ("/opt/homebrew/lib/python3.11/site-packages", "/opt/homebrew/opt/python@3.11/bin/python3"),
        ("/home/u/.local/lib/python3.12/site-packages", "/usr/bin/python3"),
        (r"C:\venv\Lib\site-packages", r"C:\venv\Scripts\python.exe"),
        ("", "/usr/bin/python3"),
        ("/env/lib/python3.12/site-packages", ""),
    ],
)
def test_its_own_tree_and_the_user_site_are_not(folder: str, python: str) -> None:
    assert not places.foreign(folder, python)
