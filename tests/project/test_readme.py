"""README and the pages of docs: snippets run, samples have the form of what is printed, links lead
somewhere, and lists hold what they must.
"""

import re
from pathlib import Path

import pytest
from checkout import ROOT

import tilewright as tw
from tilewright.cli import main

README = (ROOT / "README.md").read_text(encoding="utf-8")
LADDER_PAGE = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
GUIDES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
MOST_WORDS = 600


def fences(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


SNIPPETS = [
    text for page in (README, *GUIDES) for language, text in fences(page) if language == "python"
]
# What stands in fences without a language.
SAMPLES = [
    text for page in (README, LADDER_PAGE) for language, text in fences(page) if not language
]
LADDERS = [sample for sample in SAMPLES if sample.startswith("The ladder on ")]
(REPORT,) = (sample for sample in SAMPLES if sample.startswith("op "))

NUMBER = r"\d[\d,]*(?:\.\d+)?"
TIME = rf"{NUMBER} (?:ns|µs|ms|s)"


def test_there_are_snippets() -> None:
    assert len([text for language, text in fences(README) if language == "python"]) >= 2
    assert len(SNIPPETS) >= 4
    assert len(LADDERS) == 2
    assert len(LADDERS) + 1 == len(SAMPLES), "a sample that no test holds"


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_runs(snippet: str) -> None:
    exec(compile(snippet, "README.md", "exec"), {})


def form(line: str) -> str:
    """The line with its times and numbers blanked, but not those in names; one space each."""
    line = re.sub(rf"\b{TIME}\b", "TIME", line)
    return " ".join(re.sub(rf"(?<![\w.]){NUMBER}(?=x?\b|%)", "#", line).split())


def assert_in_order(names: list[str], known: list[str]) -> None:
    """A sample is of its day: the ladder may have got rungs since, but has all that it shows."""
    assert names == [name for name in known if name in names]
    assert len(names) > 2


@pytest.mark.parametrize("sample", LADDERS)
def test_ladders_are_printed_like_this(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    title, columns, *rows = sample.rstrip().splitlines()
    arguments = ["train", "digits", "--ladder", "--epochs", "1", "--hidden", "8"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    printed_title, printed_columns, *printed = (
        out[out.index("The ladder on") :].rstrip().split("\n")
    )
    assert title in (printed_title, printed_title.replace("digits", "mnist"))
    assert columns.split() == printed_columns.split()
    known = [*tw.kernels.names("matmul"), "auto"]
    assert [row.split()[0] for row in printed] == known
    assert_in_order([row.split()[0] for row in rows], known)
    # A rung that needs other instructions than the processor has says so, there or here.
    for ladder in (rows, printed):
        forms = {re.sub(r"^\s*\S+", "", form(row)) for row in ladder}
        assert forms - {" refused"} == {" TIME TIME # #% #x"}


def test_the_names_of_kernels_are_printed_like_this() -> None:
    (told,) = re.findall(r'names\("matmul"\)\)  # \[(.*), \.\.\.\]', LADDER_PAGE)
    names = [name.strip("'") for name in told.split(", ")]
    assert_in_order(names, tw.kernels.names("matmul"))


def test_the_report_is_printed_like_this() -> None:
    x = tw.randn(512, 512)
    with tw.explain() as report:
        x @ x
    for text in (REPORT, str(report)):
        entries, choice, _ = text.rstrip().split("\n\n")
        columns, entry = entries.splitlines()
        assert columns.split() == ["op", "problem", "kernel", "time", "GFLOP/s", "GB/s", "roofline"]
        kernel = r"\w+ \(\w+\)( \+ [\w# ]+)*"
        ran = rf"matmul float32 512x512x512 {kernel} TIME # # #% (compute|L#|memory)"
        assert re.fullmatch(ran, form(entry))
        head, *verdicts = choice.splitlines()
        assert head == "matmul float32 512x512x512: choice of kernel"
        for line in verdicts:
            assert re.fullmatch(
                r"-> \w+ about TIME chosen: \w+ TIME( \+ \w+ TIME)*|"
                r"\w+ about TIME (costs more|less exact than the precision setting '\w+' allows)|"
                r"\w+ refused: .*",
                form(line),
            ), line
        assert sum(line.startswith("->") for line in verdicts) == 1
    told = [line.removeprefix("->").split()[0] for line in REPORT.split("\n\n")[1].splitlines()[1:]]
    assert_in_order(told, tw.kernels.names("matmul"))
    printed = [candidate.name for candidate in report[-1].candidates]
    assert_in_order(printed, tw.kernels.names("matmul"))
    # The page's call was not the first.
    legends = [
        re.sub(r"\nfirst: .*", "", form(text.split("\n\n")[2])) for text in (REPORT, str(report))
    ]
    assert legends[0].replace("# thread.", "# threads.") in (
        legends[1],
        legends[1].replace("# thread.", "# threads."),
    )


def anchor(heading: str) -> str:
    """As a page's headings are linked to."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue  # elsewhere on the web
        name, _, section = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if section:
            headings = re.findall(
                r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE
            )
            assert section in map(anchor, headings), link


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


GLOSSARY = re.findall(
    r"^\| (.+?) \| (.+?) \| `(.+?)` \|$",
    (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def test_the_glossary_is_short_and_in_order() -> None:
    terms = [term for term, _, _ in GLOSSARY]
    assert 20 <= len(terms) <= 40
    assert terms == sorted(terms, key=str.lower)


@pytest.mark.parametrize("place", sorted({place for _, _, place in GLOSSARY}))
def test_a_term_lives_where_the_glossary_says(place: str) -> None:
    assert (ROOT / place).exists()


def test_every_environment_variable_is_told() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(TILEWRIGHT_\w+)` \|", page, flags=re.MULTILINE)
    assert sorted(told) == sorted(tw._core.env_variables())


def test_the_changelog_is_for_users() -> None:
    """Sixty lines a version, which somebody reads."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 120
    versions = "\n".join(lines).split("\n## ")[1:]
    for version in versions:
        assert re.match(r"\d+\.\d+\.\d+ - (unreleased|\d{4}-\d\d-\d\d)\n", version)
        assert version.count("\n") < 60
        assert set(re.findall(r"^### (.*)$", version, flags=re.MULTILINE)) <= {
            "Added", "Changed", "Fixed"
        }  # fmt: skip
