from pathlib import Path

from dpcml.paper.document import Details, Heading, Note, Notes, Text, page
from dpcml.paper.table import Cell, Line, Table

TABLE = Table(["P@3"], [Line("ours", [Cell(31.0, 1.414, 29.88, best=True)], "DPCML2"), Line("other", [Cell(2.0)])])


def test_markdown_has_ours_the_papers_and_the_difference():
    assert TABLE.markdown().splitlines()[2:] == [
        "| ours | **31.00 ± 1.41** |",
        "| *the paper's DPCML2* | 29.88 |",
        "| *difference* | +1.12 |",
        "| other | 2.00 |",
    ]


def test_html_has_the_same_in_one_cell():
    html = TABLE.html(Path())
    assert "<b>31.00</b>" in html
    assert 'paper 29.88 <span class="up">+1.12</span>' in html


def test_the_difference_is_that_of_the_figures_shown():
    assert Cell(25.004, theirs=25.0).difference() == "+0.00"
    assert Cell(24.996, theirs=25.0).gap() == 0, "what is shown as equal counts as equal"


def test_a_page_needs_nothing_from_elsewhere_and_escapes(tmp_path):
    blocks = [Heading("A & B", 1), Text("x < `y`"), Notes([Note("no", "fails")]), Details("more", ["*a*"]), TABLE]
    html = page("T", blocks, tmp_path)
    assert '<h2 id="a-b">A &amp; B</h2>' in html
    assert "x &lt; <code>y</code>" in html
    assert '<li class="fails">no</li>' in html
    assert "prefers-color-scheme: dark" in html
    assert "src=" not in html
    assert "<link" not in html
