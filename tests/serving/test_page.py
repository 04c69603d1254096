"""The explorer page in a real browser, against the real server."""

import re
import shutil
from pathlib import Path

import pytest

from dpcml import load
from dpcml.serving.settings import ServeSettings

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")
STATIC = Path(__file__).parents[2] / "src" / "dpcml" / "serving" / "static"
TOKEN = "a-token-for-the-page"


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

    def opening(client, fragment="", **options):
        base = str(client.base_url)
        context = browser.new_context(base_url=base, viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(20_000)
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
    assert titles(page) == expected(model, model.recommend(17, n=12)[0])
    assert page.inner_text("#person") == "User 17"
    assert "recommendations for user 17" in page.inner_text("#status")
    assert page.url.endswith("#user=17")


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
    assert first.locator(".chips li:visible").count() == len(groups[0].items)


def test_the_dial_mixes_the_list(client, opened, model):
    user = next(
        user
        for user in range(200)
        if model.recommend(user, n=12)[0].tolist() != model.recommend(user, n=12, mix=1.0)[0].tolist()
    )
    page = opened(client, f"#user={user}")
    assert titles(page) == expected(model, model.recommend(user, n=12)[0])
    page.focus("#mix")
    page.keyboard.press("End")
    wanted = expected(model, model.recommend(user, n=12, mix=1.0)[0])
    expect(page.locator(".list .what strong")).to_have_text(wanted)
    assert "mostly smaller interests" in page.get_attribute("#mix", "aria-valuetext")
    assert "mix=1" in page.url


def test_someone_new_is_composed_by_clicking_and_searching(client, opened, model):
    page = opened(client)
    page.click("#tab-new")
    page.wait_for_selector("#popular button")
    page.locator("#popular button").nth(0).click()
    popular = int(page.locator("#popular button").nth(0).get_attribute("data-id"))
    assert titles(page) == expected(model, model.recommend_new([popular], n=12)[0])
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
    assert page.is_visible("#welcome")


def test_a_history_can_be_taken_over_and_changed(client, opened, model):
    page = opened(client, "#user=7")
    titles(page)
    page.click("#adopt")
    expect(page.locator("#liked button")).to_have_count(len(model.train_.of(7)))
    assert page.inner_text("#person") == "Someone new"
    assert page.get_attribute("#tab-new", "aria-selected") == "true"


def test_items_on_the_map_can_be_liked(client, opened):
    page = opened(client)
    page.click("#tab-new")
    page.locator("#popular button").nth(0).click()
    titles(page)
    item = client.get("/api/v1/map").json()["items"][30]
    box = page.locator(".map canvas").bounding_box()
    x = 18 + (item["x"] + 1) / 2 * (box["width"] - 36)
    y = 18 + (1 - item["y"]) / 2 * (box["height"] - 36)
    page.locator(".map canvas").hover(position={"x": x, "y": y})
    assert page.is_visible(".tip")
    page.locator(".map canvas").click(position={"x": x, "y": y})
    expect(page.locator("#liked button")).to_have_count(2)


def test_two_models_stand_side_by_side(client, opened, models):
    page = opened(client, "#user=7")
    titles(page)
    page.check("#compare")
    page.wait_for_selector(".columns.two .column:nth-child(2) .list li")
    assert page.locator(".model-name").all_inner_texts() == ["DPCML", "ItemKNN"]
    second = load(models["itemknn"])
    shown = page.locator(".column:nth-child(2) .list strong").all_inner_texts()
    assert shown == expected(second, second.recommend(7, n=12)[0])
    assert page.locator(".column:nth-child(2) .interest h4").inner_text() == "History"
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
    assert not page.is_visible("#problem")
    page.fill("#user-search", "no such user")
    page.wait_for_selector(".options .none")
    assert 'No user with "no such user"' in page.inner_text(".options .none")


def test_an_answer_about_somebody_who_was_left_is_not_shown(client, opened):
    page = opened(client)
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
    assert not page.is_visible("#found")


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
    assert titles(page) == expected(second, second.recommend(7, n=12)[0])
    assert not page.is_visible("#mix")


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


def test_a_phone_needs_no_scrolling_sideways(client, opened):
    page = opened(client, "#user=7")
    page.set_viewport_size({"width": 360, "height": 740})
    titles(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_titles_are_text_and_nothing_comes_from_elsewhere():
    sources = "".join(file.read_text(encoding="utf-8") for file in STATIC.iterdir())
    assert "innerHTML" not in sources
    assert set(re.findall(r"https?://[^\s\"'<]+", sources)) == {"http://www.w3.org/2000/svg"}
