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
