from dpcml.paper.document import ReportTable, TableCell, TableLine, details, markdown

LINES = [TableLine("ours", [TableCell(31.0, 1.414, 29.88, best=True)], "DPCML2"), TableLine("other", [TableCell(2.0)])]
TABLE = ReportTable(["P@3"], LINES)


def test_markdown_has_ours_the_papers_and_the_difference():
    assert TABLE.markdown().splitlines()[2:] == [
        "| ours | **31.00 ± 1.41** |",
        "| *the paper's DPCML2* | 29.88 |",
        "| *difference* | +1.12 |",
        "| other | 2.00 |",
    ]


def test_the_difference_is_that_of_the_figures_shown():
    assert TableCell(25.004, theirs=25.0).difference() == "+0.00"
    assert TableCell(24.996, theirs=25.0).gap() == 0, "what is shown as equal counts as equal"


def test_blocks_are_markdown():
    assert markdown([details("More", ["*a*", "b"])]) == "More:\n\n- *a*\n- b\n"
