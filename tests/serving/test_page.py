"""The explorer page in a real browser, against the real server."""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from dpcml import load
from dpcml.feedback import read_journal
from dpcml.serving.settings import ServeSettings

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
WAIT = 1000 * int(os.environ.get("DPCML_TEST_WAIT", "120"))  # milliseconds at most; a busy machine takes long
expect.set_options(timeout=WAIT)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")
STATIC = Path(__file__).parents[2] / "src" / "dpcml" / "serving" / "static"
TOKEN = "a-token-for-the-page"
LOOKS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]  # width and colour scheme
# Visible texts whose contrast with what they stand on is below 4.5 (3 for large ones), which WCAG asks for.
FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const told = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *")].filter((one) => told(one) && one.checkVisibility()
    && !one.closest(".visually-hidden, .skip, :disabled")).flatMap((one) => {
    const rules = getComputedStyle(one);
    const [a, b] = [light(parse(rules.color).slice(0, 3)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const [size, bold] = [parseFloat(rules.fontSize), Number(rules.fontWeight) >= 700];
    const large = size >= 24 || (size >= 18.5 && bold);
    return ratio < (large ? 3 : 4.5) ? [`${one.outerHTML.slice(0, 120)} ${ratio.toFixed(2)}`] : [];
  });
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open pages; whatever a page complains of in its console, or asks of other machines, fails the test."""
    contexts, complaints = [], []

    def opening(client, fragment="", width=1440, **options):
        base = str(client.base_url)
        size = {"width": width, "height": 900 if width > 1000 else 844}
        context = browser.new_context(base_url=base, viewport=size, **options)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(base) else complaints.append(request.url))
        page.goto(f"/{fragment}")
        return page

    yield opening
    for context in contexts:
        context.close()
    # A refused request is written to the console by the browser itself.
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@pytest.fixture(scope="module")
def model(models):
    return load(models["dpcml"])


def titles(page):
    page.wait_for_selector("#columns:not([aria-busy]) .list li")
    return page.locator(".list .what strong").all_inner_texts()


def shows(page, wanted):
    """Wait until the list is the wanted one; on a busy machine an older one may stand there a moment longer."""
    expect(page.locator("#columns:not([aria-busy]) .list .what strong")).to_have_text(wanted)


def inked(canvas):
    """Count the nearly black dots of a map."""
    return canvas.evaluate(
        """canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let dark = 0;
          for (let k = 0; k < data.length; k += 4) dark += data[k + 3] > 200 && data[k] + data[k + 2] < 100;
          return dark;
        }"""
    )


def expected(model, ids):
    return [model.train_.items.title(int(one)) for one in ids]


def _whose_list_changes(model):
    """Return a user with several interests, into whose list the dial brings what categories would not bring."""
    before, *mixed = (
        [set(one) for one in model.recommend(np.arange(200), n=12, mix=mix, mix_by=by)[0].tolist()]
        for mix, by in ((0, None), (1, "interests"), (1, "categories"))
    )
    lists = zip(before, *mixed, strict=True)
    return next(
        u for u, (old, new, other) in enumerate(lists) if new not in (old, other) and len(model.interests(u)) > 1
    )


def test_search_and_pick_a_user_with_the_keyboard(client, opened, model):
    page = opened(client)
    page.wait_for_selector("#users button")
    page.focus("#user-search")
    page.keyboard.type("17")
    page.wait_for_selector("#user-search-list [role=option]")
    assert page.get_attribute("#user-search", "aria-expanded") == "true"
    first = page.get_attribute("#user-search", "aria-activedescendant")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#user-search", "aria-activedescendant") != first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    shows(page, expected(model, model.recommend(17, n=12)[0]))
    expect(page.locator("#person")).to_have_text("User 17")
    expect(page.locator("#status")).to_contain_text("recommendations for user 17")
    expect(page).to_have_url(re.compile("#user=17$"))


def test_it_opens_on_an_example(client, opened, model):
    page = opened(client)
    user = client.get("/api/v1/model").json()["models"][0]["example"]
    shows(page, expected(model, model.recommend(user, n=12)[0]))
    expect(page.locator("#person")).to_have_text(f"User {user}")
    expect(page.locator("#intro")).to_contain_text("Here is an example")
    assert len(model.interests(user)) > 1
    expect(page.locator(".cards .interest")).to_have_count(len(model.interests(user)))
    page.locator("#users button").first.click()
    expect(page.locator("#intro")).to_be_hidden()


@pytest.mark.parametrize(("box", "text", "person"), [("user", "17", "User 17"), ("item", "42", "Someone new")])
def test_enter_right_after_typing_takes_the_best_match(client, opened, box, text, person):
    page = opened(client, "#new=1" if box == "item" else "")
    titles(page)
    page.focus(f"#{box}-search")
    page.keyboard.insert_text(text)
    page.keyboard.press("Enter")  # long before the list of matches is there
    expect(page.locator("#person")).to_have_text(person)
    expect(page.locator(f"#{box}-search")).to_have_value("")
    if box == "item":
        expect(page.locator("#liked button")).to_have_count(1)
    page.wait_for_timeout(300)
    assert not page.is_visible(f"#{box}-search-list")


def test_interests_are_groups_with_items_shares_and_recommendations(client, opened, model):
    many = 6  # of an interest's items, a card shows so many at once
    user = next(user for user in range(50) if len(model.interests(user)[0].items) > many)
    page = opened(client, f"#user={user}")
    titles(page)
    groups = model.interests(user)
    cards = page.locator(".cards .interest")
    assert cards.locator("h4").all_inner_texts() == [one.name for one in groups]
    assert [f"{100 * one.share:.0f}%" for one in groups] == cards.locator(".share").all_inner_texts()
    first = cards.first
    assert first.locator(".chips li").first.inner_text() == expected(model, groups[0].items[:1])[0]
    assert first.locator(".here li").count() > 0
    colours = page.eval_on_selector_all(
        ".cards .badge", "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(colours)) == len(groups)
    assert cards.locator(".badge").all_inner_texts() == ["A", "B", "C"][: len(groups)]
    assert first.get_by_role("button", name=re.compile("more")).is_visible()
    first.get_by_role("button", name=re.compile("more")).click()
    expect(first.locator(".chips li:visible")).to_have_count(len(groups[0].items))


def test_the_dial_mixes_the_list_by_the_interests_that_the_page_shows(client, opened, model):
    user = _whose_list_changes(model)
    page = opened(client, f"#user={user}")
    shows(page, expected(model, model.recommend(user, n=12)[0]))
    page.focus("#mix")
    page.keyboard.press("End")
    wanted = expected(model, model.recommend(user, n=12, mix=1.0, mix_by="interests")[0])
    expect(page.locator(".list .what strong")).to_have_text(wanted)
    expect(page.locator("#mix")).to_have_attribute("aria-valuetext", re.compile("mostly smaller interests"))
    expect(page).to_have_url(re.compile("mix=1"))


def test_someone_new_is_composed_by_clicking_and_searching(client, opened, model):
    page = opened(client)
    titles(page)
    page.click("#tab-new")
    page.wait_for_selector("#popular button")
    page.locator("#popular button").nth(0).click()
    popular = int(page.locator("#popular button").nth(0).get_attribute("data-id"))
    shows(page, expected(model, model.recommend_new([popular], n=12)[0]))
    page.focus("#item-search")
    page.keyboard.type(model.train_.items.title(42).upper())
    page.wait_for_selector("#item-search-list [role=option]")
    page.keyboard.press("Enter")
    expect(page.locator("#liked button")).to_have_count(2)
    expect(page.locator("#popular [aria-pressed=true]").first).to_be_visible()
    liked = page.locator("#liked button").all_inner_texts()
    assert liked[1].startswith(model.train_.items.title(42))
    titles(page)
    page.locator(".list .like").first.click()
    expect(page.locator("#liked button")).to_have_count(3)
    page.locator("#liked button").first.click()
    expect(page.locator("#liked button")).to_have_count(2)
    page.click("#clear")
    expect(page.locator("#about")).to_contain_text("popular items")
    popular = client.get("/api/v1/items", params={"limit": 12}).json()["items"]
    expect(page.locator(".list .what strong")).to_have_text([one["title"] for one in popular])


def test_what_was_composed_is_in_the_address(client, opened, model):
    page = opened(client, "#like=5&like=17&hide=3&mix=0.5&like=no+such+item")
    wanted = expected(model, model.recommend_new([5, 17], n=12, mix=0.5, mix_by="interests", exclude=[3])[0])
    shows(page, wanted)
    expect(page.locator("#liked button")).to_have_count(2)
    expect(page.locator("#mix")).to_have_value("0.5")
    page.locator(".list .like").first.click()
    expect(page.locator("#liked button")).to_have_count(3)
    page.locator(".list .hide").nth(1).click()
    expect(page.locator("#toast")).to_contain_text("Hidden")
    expect(page).to_have_url(re.compile("hide=.*hide="))
    shown = titles(page)
    again = opened(client, f"#{urlsplit(page.url).fragment}")
    shows(again, shown)
    page.click("#toast button")
    expect(page).not_to_have_url(re.compile("hide=.*hide="))


def test_the_back_button_shows_the_person_before(client, opened):
    page = opened(client, "#user=7")
    titles(page)
    page.locator("#users button").nth(1).click()
    expect(page.locator("#person")).not_to_have_text("User 7")
    page.go_back()
    expect(page.locator("#person")).to_have_text("User 7")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_effect_of_the_dial_is_seen_without_scrolling(client, opened, model, width, scheme):
    user = _whose_list_changes(model)
    page = opened(client, f"#user={user}", width=width, color_scheme=scheme)
    titles(page)
    page.focus("#mix")
    page.keyboard.press("End")
    before, after = (expected(model, model.recommend(user, n=12, mix=mix, mix_by="interests")[0]) for mix in (0, 1))
    came = [title for title in after if title not in before]
    left = [title for title in before if title not in after]
    expect(page.locator(".change.in .row-name")).to_have_text(f"Came {len(came)}")
    assert page.locator(".change.in .open").all_inner_texts() == came[:4]
    assert page.locator(".change.out .open").all_inner_texts() == left[:4]
    places = page.locator(".change.in small").all_inner_texts()[: len(came[:4])]
    assert places == [f"now {after.index(title) + 1}" for title in came[:4]]
    assert page.locator(".list .came strong").all_inner_texts() == came
    page.evaluate("scrollTo(0, 0)")
    dial, change = page.locator("#mix").bounding_box(), page.locator("#changes").bounding_box()
    start = min(dial["y"], 400)
    assert change["y"] + change["height"] - start <= page.viewport_size["height"], "dial and effect fit one screen"
    assert width < 1000 or change["y"] + change["height"] <= page.viewport_size["height"]
    long = page.locator(".change.out .open span").first
    long.evaluate("one => { one.textContent = 'A very long title of a film '.repeat(9); }")
    place = page.locator(".change.out small").first.bounding_box()
    assert place["x"] + place["width"] <= change["x"] + change["width"], "long titles are cut, not places"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_can_be_read_at_any_width_and_in_any_light(client, opened, width, scheme):
    page = opened(client, "#user=7&mix=1", width=width, color_scheme=scheme)
    titles(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(FAINT) == []
    groups, around = page.locator(".groups").bounding_box(), page.locator(".around").bounding_box()
    assert (groups["y"] < around["y"]) == (width < 1000), "interests come before the map on a phone"
    page.locator(".list .open").first.click()
    page.wait_for_selector("#item-facts section:nth-of-type(3)")
    assert page.evaluate(FAINT) == []
    box = page.locator("#item").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_an_item_can_be_opened(client, opened, model):
    page = opened(client, "#user=7")
    titles(page)
    item = int(model.recommend(7, n=1)[0][0])
    page.locator(".list .open").first.click()
    page.wait_for_selector("#item-facts section:nth-of-type(3)")
    expect(page.locator("#item-title")).to_have_text(expected(model, [item])[0])
    expect(page).to_have_url(re.compile(f"#user=7&item={item}$"))
    why, similar, likes = page.locator("#item-facts section").all()
    reason = model.explain(7, [item])[0].text
    assert why.locator("p").first.inner_text() == f"{reason[0].upper()}{reason[1:]}."
    assert similar.locator(".open").all_inner_texts() == expected(model, model.similar_items(item, n=8)[0])
    count = int(model.train_.per_item[item])
    assert f"{count} of 200 users" in likes.inner_text()
    fans = [f"User {row}" for row in model.train_.by_item[[item]].indices]
    assert set(likes.locator("button").all_inner_texts()) <= set(fans)
    similar.locator(".open").first.click()
    expect(page.locator("#item-title")).to_have_text(expected(model, model.similar_items(item, n=1)[0])[0])
    page.keyboard.press("Escape")
    expect(page.locator("#item")).to_be_hidden()
    expect(page).to_have_url(re.compile("#user=7$"))  # the address follows a moment later
    again = opened(client, f"#user=7&item={item}")
    expect(again.locator("#item-title")).to_have_text(expected(model, [item])[0])
    again.wait_for_selector("#item-facts section:nth-of-type(3)")
    fan = again.locator("#item-facts section").nth(2).locator("button").first
    name = fan.inner_text()
    fan.click()
    expect(again.locator("#person")).to_have_text(name)


def test_likes_and_hidden_items_go_to_the_server(models, serve, opened, tmp_path):
    client = serve(models["dpcml"], ServeSettings(feedback=tmp_path / "journal"))
    page = opened(client, "#user=7")
    before = titles(page)
    page.locator(".list .hide").nth(1).click()
    expect(page.locator("#toast")).to_contain_text(f"Hidden: {before[1]}")
    expect(page.locator(".list .what strong").nth(1)).to_have_text(before[2])
    page.click("#toast button")
    expect(page.locator(".list .what strong").nth(1)).to_have_text(before[1])
    page.locator(".list .like").first.click()
    expect(page.locator("#toast")).to_contain_text(f"Liked: {before[0]}")
    expect(page.locator(".list .what strong").first).not_to_have_text(before[0])
    page.locator(".list .open").first.click()
    page.locator("#item-buttons .hide-this").click()
    expect(page.locator("#toast")).to_contain_text("Hidden")
    assert [one.action for one in read_journal(tmp_path / "journal")[0]] == ["hide", "clear", "like", "hide"]


def test_without_feedback_a_known_user_has_no_such_buttons(client, opened):
    page = opened(client, "#user=7")
    titles(page)
    assert page.locator(".like, .hide").count() == 0


def test_a_history_can_be_taken_over_and_changed(client, opened, model):
    page = opened(client, "#user=7")
    titles(page)
    page.click("#adopt")
    expect(page.locator("#liked button")).to_have_count(len(model.train_.of(7)))
    expect(page.locator("#person")).to_have_text("Someone new")
    expect(page.locator("#tab-new")).to_have_attribute("aria-selected", "true")


def test_items_on_the_map_can_be_opened_and_liked(client, opened):
    page = opened(client, "#like=5")
    titles(page)
    item = client.get("/api/v1/map").json()["items"][30]
    box = page.locator(".map canvas").bounding_box()
    x = 18 + (item["x"] + 1) / 2 * (box["width"] - 36)
    y = 18 + (1 - item["y"]) / 2 * (box["height"] - 36)
    page.locator(".map canvas").hover(position={"x": x, "y": y})
    expect(page.locator(".tip")).to_be_visible()
    page.locator(".map canvas").click(position={"x": x, "y": y})
    expect(page.locator("#item-title")).to_have_text(item["title"])
    page.locator("#item-buttons .like-this").click()
    expect(page.locator("#liked button")).to_have_count(2)


def test_lists_do_not_wait_for_the_map(client, opened):
    page = opened(client)
    titles(page)
    held = []
    page.route("**/api/v1/map**", lambda route: held.append(route))
    page.reload()
    assert titles(page)
    assert "being drawn" in page.inner_text(".around")
    assert not page.locator("canvas").count()
    page.locator("#users button").first.click()  # one request for the map is enough
    page.wait_for_selector("#columns:not([aria-busy]) .list li")
    assert len(held) == 1
    held[0].continue_()
    page.wait_for_selector("canvas")
    expect(page.locator(".around")).not_to_contain_text("being drawn")


def test_two_models_stand_side_by_side(client, opened, models):
    page = opened(client, "#user=7")
    titles(page)
    page.check("#compare")
    page.wait_for_selector(".columns.two .column:nth-child(2) .list li")
    expect(page.locator(".model-name")).to_have_text(["DPCML", "ItemKNN"])
    second = load(models["itemknn"])
    wanted = expected(second, second.recommend(7, n=12)[0])
    expect(page.locator(".column:nth-child(2) .list .what strong")).to_have_text(wanted)
    expect(page.locator(".column:nth-child(2) .interest h4")).to_have_text("History")
    assert inked(page.locator(".column:nth-child(2) canvas")) > 850  # rings alone have some 600 pixels; here are likes


def test_what_goes_wrong_is_told(client, opened):
    page = opened(client, "#user=nobody")
    page.wait_for_selector("#problem:not([hidden])")
    assert "unknown user 'nobody'" in page.inner_text("#problem")
    assert "Search for a user by id" in page.inner_text("#problem")
    assert not page.is_visible("#found")
    assert page.get_attribute("#problem", "role") == "alert"
    page.route("**/api/v1/recommend**", lambda route: route.abort())
    page.locator("#users button").first.click()
    expect(page.locator("#problem")).to_contain_text("cannot be reached")
    page.unroute("**/api/v1/recommend**")
    page.locator("#users button").first.click()
    titles(page)
    expect(page.locator("#problem")).to_be_hidden()
    page.fill("#user-search", "no such user")
    page.wait_for_selector(".options .none")
    assert 'No user with "no such user"' in page.inner_text(".options .none")


def test_an_answer_about_somebody_who_was_left_is_not_shown(client, opened):
    page = opened(client)
    titles(page)
    held, left = [], []

    def hold(route):
        if left:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/v1/recommend**", hold)
    page.locator("#users button").first.click()
    while not held:
        page.wait_for_timeout(20)
    page.click("#tab-new")
    left.append(True)
    with page.expect_response("**/api/v1/recommend**"):
        for route in held:
            route.continue_()
    page.wait_for_timeout(1000)  # for what the answer would change
    assert not page.is_visible("#problem")
    assert page.inner_text("#person") == "Someone new"
    assert page.inner_text(".recommended h3") == "Popular"


def test_a_token_is_asked_for(models, serve, opened):
    page = opened(serve(models["dpcml"], ServeSettings(token=TOKEN)), "#user=7")
    for token in ("a-wrong-token-first", TOKEN):
        page.wait_for_selector("#ask-token[open]")
        page.fill("#token", token)
        page.keyboard.press("Enter")
    assert len(titles(page)) == 12


def test_a_model_without_interests_shows_its_list(models, serve, opened):
    page = opened(serve(models["itemknn"]), "#user=7")
    second = load(models["itemknn"])
    shows(page, expected(second, second.recommend(7, n=12)[0]))
    expect(page.locator("#mix")).to_be_hidden()


def test_all_of_it_is_reached_by_tab_in_order(client, opened):
    page = opened(client, "#user=7")
    titles(page)
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(22):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    order = [reached.index(one) for one in ("skip", "theme", "tab-user", "user-search", "adopt", "mix", "compare")]
    assert order == sorted(order)
    named = "one.innerText || one.getAttribute('aria-label') || one.labels?.length"
    script = f"all => all.filter((one) => one.checkVisibility() && !({named})).map((one) => one.outerHTML)"
    unnamed = page.eval_on_selector_all("button, input, canvas", script)
    assert unnamed == []


def test_tabs_follow_the_arrows(client, opened):
    page = opened(client)
    page.wait_for_selector("#users button")
    page.focus("#tab-user")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-new"
    assert page.is_visible("#panel-new")
    assert not page.is_visible("#panel-user")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_until_chosen(client, opened, scheme):
    page = opened(client, color_scheme=scheme)
    page.wait_for_selector("#users button")
    brightness = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (page.evaluate(brightness) < 100) == (scheme == "dark")
    page.click("#theme")
    assert (page.evaluate(brightness) < 100) == (scheme == "light")
    page.reload()
    assert (page.evaluate(brightness) < 100) == (scheme == "light")


def test_a_small_phone_needs_no_scrolling_sideways(client, opened):
    page = opened(client, "#user=7", width=360)
    titles(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_titles_are_text_and_nothing_comes_from_elsewhere():
    sources = "".join(file.read_text(encoding="utf-8") for file in STATIC.iterdir())
    assert "innerHTML" not in sources
    assert set(re.findall(r"https?://[^\s\"'<]+", sources)) == {"http://www.w3.org/2000/svg"}
