"""The report in a real browser: it sorts, filters, hovers, copies, and never overflows."""

import csv
import io
from typing import Any


def column(page: Any, name: str) -> list[str]:
    """Return the texts of a column, top to bottom, of the rows that are shown."""
    texts: list[str] = page.evaluate(
        """name => {
          const heads = [...document.querySelectorAll('#all thead th')].map(th => th.textContent);
          return [...document.querySelectorAll('#all tbody tr')].filter(row => !row.hidden)
            .map(row => row.cells[heads.indexOf(name)].textContent);
        }""",
        name,
    )
    return texts


def sorting(page: Any, name: str) -> str:
    head = page.locator("#all thead th", has=page.get_by_role("button", name=name, exact=True))
    order: str = head.get_attribute("aria-sort")
    return order


def test_a_click_sorts_by_the_number_and_its_unit(page: Any) -> None:
    """331 microseconds are more than 1.81: a time sorts by its value, what has none comes last."""
    page.get_by_role("button", name="Time", exact=True).click()
    times = column(page, "Time")
    assert times[0].startswith("1.81 µs")
    assert "" == times[-1]
    assert "ascending" == sorting(page, "Time")
    page.get_by_role("button", name="Time", exact=True).click()
    assert column(page, "Time")[0].startswith("622 µs")
    assert "descending" == sorting(page, "Time")


def test_an_invalid_ratio_never_sorts_as_a_score(page: Any) -> None:
    """Best first puts the case above the sheet on top, not the impossible one."""
    page.get_by_role("button", name="SOL", exact=True).click()
    page.get_by_role("button", name="SOL", exact=True).click()
    assert column(page, "SOL")[0].startswith("▲ 106.0 %")


def test_the_keyboard_sorts_and_a_third_press_restores_the_order(page: Any) -> None:
    """Enter on a heading does what a click does."""
    before = column(page, "Operator")
    page.get_by_role("button", name="Operator", exact=True).focus()
    page.keyboard.press("Enter")
    assert "add_rmsnorm" == column(page, "Operator")[0]
    page.keyboard.press("Enter")
    assert "swiglu" == column(page, "Operator")[0]
    page.keyboard.press("Enter")
    assert before == column(page, "Operator")
    assert "none" == sorting(page, "Operator")


def test_the_filter_wants_every_word(page: Any) -> None:
    """Words in any order and case narrow the table, and the count says how far."""
    page.get_by_label("Filter").fill("TORCH softmax")
    page.locator("#shown", has_text="6 of 69 cases").wait_for()
    assert {"softmax"} == set(column(page, "Operator"))
    page.get_by_label("Filter").fill("")
    page.locator("#shown", has_text="69 cases").wait_for()


def test_a_link_to_a_filtered_row_shows_it(page: Any) -> None:
    """A mark of a chart leads to its row even while the filter hides it."""
    page.get_by_label("Filter").fill("nothing like this")
    page.locator("#shown", has_text="0 of 69 cases").wait_for()
    page.evaluate("location.hash = 'r5'")
    page.locator("#r5").wait_for(state="visible")


def test_ids_are_unique_and_every_link_resolves(page: Any) -> None:
    """With the charts in place too."""
    assert [] == page.evaluate(
        """() => {
          const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
          const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
          const links = [...document.querySelectorAll('a')].map(
            a => a.getAttribute('href') || a.getAttribute('xlink:href') || '');
          return [...twice, ...links.filter(
            link => link.startsWith('#') && !document.getElementById(link.slice(1)))];
        }"""
    )
    assert 0 == page.locator("[target], [style], [src]").count()


def test_the_page_never_scrolls_sideways(page: Any) -> None:
    """Wide tables scroll in their own boxes."""
    for width in (400, 800, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert width >= page.evaluate("document.documentElement.scrollWidth")


def test_the_scores_are_seen_without_scrolling(page: Any) -> None:
    """At 1280 px the table shows a case, its time, every score and what limits it."""
    hidden = page.evaluate(
        """() => {
          const box = document.querySelector('.tall');
          const edge = box.getBoundingClientRect().left + box.clientWidth;
          return [...document.querySelectorAll('#all thead th')]
            .filter(head => head.getBoundingClientRect().right > edge + 1)
            .map(head => head.textContent);
        }"""
    )
    assert set() == {"Time", "SOL", "SOL@measured", "SOL@clock", "Limiter"} & set(hidden)


def test_on_a_phone_what_would_help_stands_under_its_case(page: Any) -> None:
    """At 400 px the costliest cases and their advice fit the width."""
    page.set_viewport_size({"width": 400, "height": 900})
    box = page.locator("[aria-label='The costliest cases']")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    case, words = (
        box.locator(name).first.bounding_box() for name in ("tbody th", "tbody td.words")
    )
    assert words["y"] > case["y"] + case["height"]


def test_the_type_of_charts_is_never_shrunk(page: Any) -> None:
    """A chart is drawn for 640 px; any narrower, its 9 px labels can't be read."""
    for width in (1100, 1280, 1499, 1500, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        widths = page.evaluate(
            "[...document.querySelectorAll('.paper svg')].map(e => e.getBoundingClientRect().width)"
        )
        assert min(widths) >= 640


def lit(page: Any) -> list[str]:
    """Return the rows that are highlighted."""
    rows: list[str] = page.evaluate(
        "[...document.querySelectorAll('#all tr.on')].map(row => row.id)"
    )
    return rows


def height(page: Any) -> int:
    tall: int = page.evaluate("document.documentElement.scrollHeight")
    return tall


def test_a_mark_under_the_pointer_tells_its_case_and_lights_its_row(page: Any) -> None:
    """The numbers come from the table, and nothing on the page moves."""
    before = height(page)
    mark = page.locator(".overview a[href='#r5']").first
    mark.hover()
    hint = page.get_by_role("tooltip")
    assert "copy/solkit elements=134217728 bf16" in hint.inner_text()
    assert column(page, "Time")[5] in hint.inner_text()
    assert "memory" in hint.inner_text()
    assert ["r5"] == lit(page)
    assert before == height(page)
    page.mouse.move(2, 2)
    assert not hint.is_visible()
    assert [] == lit(page)


def test_a_focused_mark_does_what_a_hovered_one_does(page: Any) -> None:
    """Tab reaches a mark; Escape closes the hint; Enter goes to the row."""
    mark = page.locator(".overview a[href='#r5']").first
    mark.focus()
    hint = page.get_by_role("tooltip")
    assert "copy/solkit" in hint.inner_text()
    assert ["r5"] == lit(page)
    page.keyboard.press("Escape")
    assert not hint.is_visible()
    page.keyboard.press("Enter")
    assert "#r5" == page.evaluate("location.hash")
    assert page.locator("#r5").evaluate("row => row.matches(':target')")


def test_a_row_under_the_pointer_lights_its_marks(page: Any) -> None:
    """From the table back to the charts."""
    page.locator("#r5 td").nth(1).hover()
    marks = page.locator(".paper a.on")
    assert marks.count() >= 2
    assert {"#r5"} == set(marks.evaluate_all("marks => marks.map(m => m.getAttribute('href'))"))


def test_the_hint_stays_inside_the_window(page: Any) -> None:
    """Also on a phone, for the outermost marks."""
    page.set_viewport_size({"width": 390, "height": 700})
    for mark in page.locator(".overview a[href^='#r']").all()[::7]:
        mark.focus()
        box = page.get_by_role("tooltip").bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 700


def test_a_heading_says_what_it_means_under_the_focus_too(page: Any) -> None:
    """A title attribute would be for the pointer alone."""
    page.get_by_role("button", name="SOL@clock", exact=True).focus()
    assert "the score at the SM clock truly held" == page.get_by_role("tooltip").inner_text()
    assert 0 == page.locator("#all th[title]").count()


def test_columns_are_chosen_by_keyboard(page: Any) -> None:
    """Enter opens the menu, Space takes a column away and brings it back, Escape closes it."""
    page.locator("#columns summary").focus()
    page.keyboard.press("Enter")
    box = page.get_by_label("Kernel", exact=True)
    box.focus()
    page.keyboard.press("Space")
    assert not page.locator("#r5 td").nth(2).is_visible()
    assert not page.get_by_role("button", name="Kernel", exact=True).is_visible()
    assert page.locator("#r5 td").nth(3).is_visible()
    page.keyboard.press("Space")
    assert page.locator("#r5 td").nth(2).is_visible()
    page.keyboard.press("Escape")
    assert not box.is_visible()
    assert "SUMMARY" == page.evaluate("document.activeElement.tagName")


def table_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_copy_takes_the_rows_and_columns_that_are_shown(browser: Any, report: str) -> None:
    """As CSV with CRLF line ends, sorted as on the page; the page says how much it was."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(report)
    page.get_by_label("Filter").fill("torch softmax")
    page.locator("#shown", has_text="6 of 69 cases").wait_for()
    page.get_by_role("button", name="Time", exact=True).click()
    page.locator("#columns summary").click()
    page.get_by_label("Kernel", exact=True).uncheck()
    page.get_by_role("button", name="Copy as CSV").click()
    page.locator("#copied", has_text="Copied 6 rows").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    rows = table_of(text)
    assert ["#", "Operator", "Dtype", "Shape", "Time", "SOL"] == rows[0][:6]
    assert 7 == len(rows) == text.count("\r\n")
    assert {len(rows[0])} == {len(row) for row in rows}
    assert column(page, "Time") == [row[4] for row in rows[1:]]
    assert not page.get_by_label("The table as CSV").is_visible()
    context.close()


def test_a_refused_clipboard_leaves_the_text_selected(page: Any) -> None:
    """The page says so, and Ctrl+C does the rest."""
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(Error('no')); }")
    page.get_by_role("button", name="Copy as CSV").click()
    page.locator("#copied", has_text="69 rows").wait_for()
    assert "selected below" in page.locator("#copied").inner_text()
    area = page.get_by_label("The table as CSV")
    picked = area.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
    assert 70 == len(table_of(picked))
    assert area.evaluate("area => area === document.activeElement")


def test_motion_is_for_those_who_want_it(browser: Any, report: str) -> None:
    """Links glide, unless the reader asked for less motion."""
    for wish, behaviour in (("reduce", "auto"), ("no-preference", "smooth")):
        context = browser.new_context(reduced_motion=wish)
        page = context.new_page()
        page.goto(report)
        said = page.evaluate("getComputedStyle(document.documentElement).scrollBehavior")
        assert behaviour == said
        context.close()


def test_the_heat_table_uses_the_room_beside_the_charts(page: Any) -> None:
    """On a desk it stands right of them and starts with them; on a phone it follows them."""
    boxes = """section => ['.charts', '.heat'].map(each => {
      const box = section.querySelector(each).getBoundingClientRect();
      return [box.left, box.top, box.right, box.bottom];
    })"""
    section = page.locator("section.operator", has=page.locator(".split")).first
    charts, heat = section.evaluate(boxes)
    assert charts[2] < heat[0]
    assert charts[1] == heat[1]
    page.set_viewport_size({"width": 390, "height": 900})
    charts, heat = section.evaluate(boxes)
    assert charts[3] < heat[1]
