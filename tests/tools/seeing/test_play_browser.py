"""The page of `tape.play` in a real browser. Chromium is Playwright's own, or the one that TAPEJAX_CHROMIUM names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from test_play import long_tape

import tapejax as tf

pytest.importorskip("matplotlib")
playwright = pytest.importorskip("playwright.sync_api")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        executable = os.environ.get("TAPEJAX_CHROMIUM") or started.chromium.executable_path
        if not os.path.exists(executable):
            pytest.skip("needs a Chromium: playwright install chromium, or TAPEJAX_CHROMIUM=its path")
        browser = started.chromium.launch(executable_path=executable)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a page; afterwards nothing may have failed in it, and nothing may have been asked of a network."""
    contexts, faults = [], []

    def visit(shown, width=1280, height=800, **options):
        file = tmp_path / "tape.html"
        if isinstance(shown, str):
            file.write_text(shown, encoding="utf-8")
        else:
            shown.save(file)
        options = {"color_scheme": "light", "reduced_motion": "reduce", **options}
        contexts.append(chromium.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(request.url))
        page.goto(file.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not faults


def small():
    """y = (h² + h)·1 with h = x·w, of which h has three contributions."""
    x, w = tf.constant([[1.0, 2.0]]), tf.Variable([[0.5, 1.0], [-1.0, 0.25]])
    with tf.GradientTape(persistent=True) as tape:
        h = x @ w
        y = tf.reduce_sum(h * h + h)
    return tape.play(y, w), tape.gradient(y, w).numpy()


def long(rounds):
    tape, y, w = long_tape(rounds)
    return tape.play(y, w), tape.gradient(y, w).numpy()


def place(page):
    """The step that is shown, and the last one."""
    return tuple(map(int, page.locator(".counter").inner_text().split("/")))


def said(page):
    return page.locator(".now").inner_text()


def numbers(page, within=".now"):
    """The numbers of the first matrix that is shown, as exactly as the page has them."""
    rows = page.locator(f"{within} table").first.locator("tr")
    return [[float(cell.get_attribute("title")) for cell in row.locator("td").all()] for row in rows.all()]


def test_the_arrow_keys_step_through_it(visit):
    shown, gradient = small()
    page = visit(shown)
    assert place(page) == (0, 10) and "with respect to" in said(page)
    assert page.locator("img").is_hidden()
    texts, lit = [], []
    for step in range(1, 11):
        page.keyboard.press("ArrowRight")
        assert place(page)[0] == step
        texts.append(said(page))
        lit.append(page.locator(".code .lit").all_inner_texts())
    assert "h = matmul(x, w)" in texts[0] and "y = reduce_sum" in texts[3] and "begins" in texts[4]
    assert all(["h = x @ w" in lines[0] for lines in (lit[0], lit[8])]) and "tf.reduce_sum(h * h + h)" in lit[1][0]
    assert "∂y/∂h" in texts[7] and texts[7].count("+") == 2 and "=" in texts[7]  # 1 + h + h
    np.testing.assert_array_equal(numbers(page), gradient)
    page.keyboard.press("ArrowRight")
    assert place(page) == (10, 10)
    page.keyboard.press("ArrowLeft")
    assert place(page) == (9, 10)
    page.keyboard.press("Home")
    assert place(page) == (0, 10)
    page.keyboard.press("End")
    assert place(page) == (10, 10)


def test_the_graph_shows_where_it_is(visit):
    page = visit(small()[0])
    assert page.locator(".node.ahead").count() == 4 and page.locator(".node .cotangent > *").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.locator(".node.active .label").all_text_contents() == ["matmul"]
    assert page.locator(".edge.lit").count() == 2 and page.locator(".node.ahead").count() == 3
    page.keyboard.press("End")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    # back through the product: one edge, on which two contributions come to h
    assert page.locator(".node.active .label").all_text_contents() == ["multiply"]
    assert page.locator(".node.receiving .label").all_text_contents() == ["matmul"]
    assert page.locator(".edge.lit").count() == 1
    assert page.locator(".thumb rect").count() > 10


def test_buttons_slider_nodes_and_lines(visit):
    page = visit(small()[0])
    page.get_by_role("button", name="One step on").click()
    page.get_by_role("button", name="One step on").click()
    assert place(page)[0] == 2
    page.get_by_role("button", name="One step back").click()
    assert place(page)[0] == 1
    page.get_by_role("button", name="Backward").click()
    assert "begins" in said(page)
    slider = page.get_by_role("slider", name="Step")
    assert slider.get_attribute("aria-valuetext") == "5 of 10, backward"
    slider.fill("3")
    assert place(page)[0] == 3
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert place(page)[0] == 4  # by one, not by two
    page.locator(".node", has_text="matmul").click()
    assert "h = matmul(x, w)" in said(page)
    page.locator(".code li", has_text="reduce_sum").click()
    assert place(page)[0] == 2
    page.get_by_role("button", name="To the gradient").click()
    assert "The gradient" in said(page)
    page.get_by_role("button", name="To the start").click()
    assert place(page)[0] == 0


def test_it_plays_by_itself_and_pauses(visit):
    page = visit(small()[0])
    page.keyboard.press(" ")
    page.get_by_text("2 / 10").wait_for(timeout=10_000)
    page.get_by_role("button", name="Pause").click()
    at = place(page)
    page.wait_for_timeout(2_000)
    assert place(page) == at and page.get_by_role("button", name="Play").is_visible()


@pytest.mark.parametrize("width", [380, 800, 1280, 1920])
@pytest.mark.parametrize("rounds", [1, 14, 500])
def test_every_length_fits_every_window(visit, width, rounds):
    shown, gradient = long(rounds)
    page = visit(shown, width=width, height=800)
    page.keyboard.press("End")
    np.testing.assert_allclose(numbers(page), gradient, rtol=1e-4)
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box, graph = page.locator(".node.active > rect").bounding_box(), page.locator(".graph").bounding_box()
    assert graph["y"] - 2 <= box["y"] and box["y"] + box["height"] <= graph["y"] + graph["height"] + 2
    assert graph["x"] - 2 <= box["x"] and box["x"] + box["width"] <= graph["x"] + graph["width"] + 2
    letters = page.locator(".node .label").first.bounding_box()["height"]
    assert letters > 9
    assert ("narrow" in page.locator(".player").get_attribute("class")) == (width == 380)


def test_text_stays_in_its_node(visit):
    for shown, _ in (small(), long(500)):
        page = visit(shown)
        page.keyboard.press("End")
        for node in page.locator(".node").all():
            rect = node.locator("rect").first.bounding_box()
            for text in node.locator("text").all():
                box = text.bounding_box()
                assert rect["x"] <= box["x"] and box["x"] + box["width"] <= rect["x"] + rect["width"], (
                    text.text_content()
                )
                assert rect["y"] <= box["y"] and box["y"] + box["height"] <= rect["y"] + rect["height"], (
                    text.text_content()
                )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader(visit, scheme):
    page = visit(small()[0], color_scheme=scheme)
    colour = page.locator(".player").evaluate("node => getComputedStyle(node).backgroundColor")
    red = int(colour.removeprefix("rgb(").split(",")[0])
    assert red > 250 if scheme == "light" else red < 40


def test_motion_follows_the_reader(visit):
    for motion, name in (("reduce", "none"), ("no-preference", "forward")):
        page = visit(small()[0], reduced_motion=motion)
        page.keyboard.press("ArrowRight")
        way = page.locator(".edge.lit .way").first
        assert way.evaluate("node => getComputedStyle(node).animationName") == name


def notebook(*outputs, background="#ffffff"):
    """A page that shows outputs as a notebook does: HTML is set, and its scripts are made anew."""
    cells = "".join(f"<template>{output}</template><div class=cell></div>" for output in outputs)
    return f"""<!DOCTYPE html><meta charset="utf-8"><body style="background:{background}">{cells}<script>
    for (const cell of document.querySelectorAll(".cell")) {{
      cell.innerHTML = cell.previousElementSibling.innerHTML;
      for (const script of cell.querySelectorAll("script")) {{
        const again = document.createElement("script");
        for (const x of script.attributes) again.setAttribute(x.name, x.value);
        again.textContent = script.textContent;
        script.replaceWith(again);
      }}
    }}</script>"""


def output_of(shown):
    return shown._repr_mimebundle_()["text/html"]


def test_in_a_notebook_each_is_stepped_by_itself(visit):
    one, other = output_of(small()[0]), output_of(long(1)[0])
    page = visit(notebook(one, other, one, background="#111111"), height=2000)
    counters = page.locator(".counter")
    assert counters.all_inner_texts() == ["0 / 10", "0 / 12", "0 / 10"]
    page.keyboard.press("ArrowRight")
    assert counters.all_inner_texts() == ["0 / 10", "0 / 12", "0 / 10"]  # the notebook has the keys
    page.evaluate("document.addEventListener('keydown', () => (document.title += 'seen '))")
    page.locator(".now").nth(1).click()
    page.keyboard.press("ArrowRight")
    assert page.title() == ""  # nor does the notebook, or a slide, move on
    assert counters.all_inner_texts() == ["0 / 10", "1 / 12", "0 / 10"]
    heights = {page.locator(".player").nth(1).bounding_box()["height"]}
    for _ in range(11):
        page.keyboard.press("ArrowRight")
        heights.add(page.locator(".player").nth(1).bounding_box()["height"])
    assert len(heights) == 1  # what is below does not move
    # the notebook is dark, whatever the system says, until its theme is switched
    assert brightness(page) < 40
    page.evaluate("document.body.style.background = '#ffffff'")
    page.wait_for_function(f"() => ({BRIGHTNESS}) > 200")


BRIGHTNESS = """Number(getComputedStyle(document.querySelector(".tapejax-play").shadowRoot.querySelector(".player"))
    .backgroundColor.match(/\\d+/)[0])"""


def brightness(page):
    return page.evaluate(BRIGHTNESS)


def test_a_button_that_is_off_leaves_the_keys_to_the_player(visit):
    page = visit(notebook(output_of(small()[0])))
    page.get_by_role("button", name="To the gradient").click()
    assert place(page) == (10, 10)
    page.keyboard.press("ArrowLeft")
    assert place(page) == (9, 10)
    page.get_by_role("button", name="To the start").click()
    page.keyboard.press("ArrowRight")
    assert place(page) == (1, 10)


def test_full_screen(visit):
    page = visit(notebook(output_of(small()[0])), height=900)
    player = page.locator(".player")
    before = player.bounding_box()
    page.get_by_role("button", name="Full screen").click()
    page.locator(".player.page").wait_for()
    assert player.bounding_box()["height"] > before["height"]
    page.keyboard.press("ArrowRight")
    assert place(page)[0] == 1
    page.keyboard.press("f")
    page.locator(".player:not(.page)").wait_for()
    assert player.bounding_box()["height"] == before["height"]


def test_without_scripts_there_is_the_still_picture(visit):
    page = visit(
        notebook(output_of(small()[0])).partition("<script>\n")[0].replace("template", "div"), java_script_enabled=False
    )
    image = page.locator("img").first
    assert image.is_visible() and image.bounding_box()["width"] > 300
    assert image.get_attribute("alt") == "The tape of y: 4 operations, forward and backward"
    assert "frames" not in page.locator("body").inner_text()


def test_the_users_text_is_text(visit):
    text = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\"> & <b>"
    params = {text: tf.Variable(3.0)}
    with tf.GradientTape() as tape:
        y = params[text] * 2.0
    page = visit(tape.play(y, params))
    assert f"params[{text!r}]" in said(page)
    page.keyboard.press("End")
    assert page.title() == "The tape of y: 1 operation, forward and backward"
    assert page.locator(".now b, .now img").count() == 0


# ---- why ------------------------------------------------------------------------------------------------------------


def lecture():
    """y = mean((tanh(a·W) + 14.68·sin(x))²): elementwise operations, a product of matrices, a broadcast."""
    x, W, a = tf.Variable(1.0), tf.Variable([[1.0, -0.2], [0.3, 0.4]]), tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        u = tf.sin(x) * 14.68
        h = tf.tanh(a @ W)
        y = tf.reduce_sum(h) * u
    return tape.play(y, [x, W])


def jump(page, said_there):
    """Goes on until the step says so."""
    for _ in range(place(page)[1]):
        if said_there in said(page):
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"no step says {said_there}")


def test_the_local_derivative_is_told(visit):
    page = visit(lecture())
    page.get_by_role("button", name="Backward").click()
    jump(page, "t0 = sin(x)")
    terms = page.locator(".now .term").last
    assert terms.locator(".rule").inner_text() == "cos(1.0)"
    assert [x.inner_text() for x in terms.locator(".single").all()][1] == "0.5403"
    assert "×" in terms.inner_text() and "=" in terms.inner_text()
    page.get_by_role("button", name="Backward").click()
    jump(page, "matmul(a, W)")
    assert page.locator(".now .rule").inner_text() == "aᵀ · ∂y/∂t2" and "2×1 · 1×2" in said(page)


def test_forward_mode(visit):
    page = visit(lecture())
    assert place(page) == (0, 14)
    page.get_by_role("button", name="Forward mode").first.click()
    assert place(page) == (0, 7) and "direction v" in said(page)
    jump(page, "t0 = sin(x)")
    assert "∂t0/∂v" in said(page) and page.locator(".now .rule").inner_text() == "cos(1.0)"
    assert page.locator(".node.active .cotangent").text_content() == "∂ 0.5403"
    page.keyboard.press("End")
    assert place(page) == (7, 7) and "∂y/∂v" in said(page)
    derivative, same = [float(x.get_attribute("title")) for x in page.locator(".now .single").all()]
    assert derivative == pytest.approx(same, rel=1e-4)
    page.get_by_role("button", name="Reverse mode").click()
    assert place(page) == (7, 14)
    page.keyboard.press("End")
    assert "The gradient" in said(page)


# ---- a presenter ----------------------------------------------------------------------------------------------------


def test_a_clicker_alone(visit):
    page = visit(small()[0])
    for expected in (1, 2):
        page.keyboard.press("PageDown")
        assert place(page)[0] == expected
    page.keyboard.press("PageUp")
    assert place(page)[0] == 1


def deck(*slides):
    """Slides as reveal.js has them: the keys turn the page, whatever has the focus."""
    sections = "".join(f"<section>{slide}</section>" for slide in slides)
    return f"""<!DOCTYPE html><meta charset="utf-8"><style>section:not(.present) {{ display: none }}</style>
    <body style="background:white"><div class="reveal"><div class="slides">{sections}</div></div><script>
    const slides = [...document.querySelectorAll("section")];
    let at = 0;
    const turn = () => slides.forEach((slide, i) => slide.classList.toggle("present", i === at));
    document.addEventListener("keydown", (event) => {{
      at = Math.max(0, Math.min(slides.length - 1, at + (({{ PageDown: 1, PageUp: -1 }})[event.key] ?? 0)));
      turn();
    }});
    turn();
    </script>"""


def test_a_clicker_in_a_deck(visit):
    page = visit(deck("<h1>Before</h1>", output_of(small()[0]), "<h1>After</h1>"))
    page.keyboard.press("PageDown")
    counter = page.locator(".counter")
    for step in range(11):
        assert counter.inner_text() == f"{step} / 10"
        page.keyboard.press("PageDown")
    assert page.get_by_text("After").is_visible()  # behind the last step comes the next slide
    page.keyboard.press("PageUp")
    assert counter.inner_text() == "10 / 10"
    for _ in range(11):
        page.keyboard.press("PageUp")
    assert page.get_by_text("Before").is_visible()
    page.keyboard.press("PageDown")
    page.locator(".now").click()  # the focus in the player changes nothing
    for _ in range(11):
        page.keyboard.press("PageDown")
    assert page.get_by_text("After").is_visible()


def test_a_notebook_keeps_its_page_keys(visit):
    page = visit(notebook(output_of(small()[0])))
    page.keyboard.press("PageDown")
    assert place(page)[0] == 0


def test_speed_and_repeat(visit):
    page = visit(small()[0])
    page.clock.install()
    page.get_by_role("combobox", name="Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(4 * 375 + 10)
    assert place(page)[0] == 4
    page.get_by_role("combobox", name="Speed").select_option("0.5")
    page.clock.run_for(2 * 3000 + 10)
    assert place(page)[0] == 6
    page.clock.run_for(10 * 3000)
    assert place(page)[0] == 10 and page.get_by_role("button", name="Play").is_visible()
    page.get_by_role("button", name="Repeat").click()
    page.get_by_role("button", name="Play").click()  # from the start
    page.clock.run_for(11 * 3000 + 10)
    assert place(page)[0] == 0 and page.get_by_role("button", name="Pause").is_visible()
    page.clock.run_for(3000)
    assert place(page)[0] == 1


def test_predict_then_reveal(visit):
    page = visit(lecture())
    page.get_by_role("button", name="Predict").click()
    page.keyboard.press("ArrowRight")
    assert place(page)[0] == 1 and "t0 = " in said(page) and "0.841" not in page.locator(".player").inner_text()
    assert page.locator(".node", has_text="sin").locator(".value text").count() == 0
    page.get_by_role("spinbutton", name="Your prediction").fill("0.84")
    page.keyboard.press("Enter")
    assert "Right: 0.84." in said(page) and "0.84147" in said(page) and place(page)[0] == 1
    page.keyboard.press("ArrowRight")
    page.get_by_role("spinbutton", name="Your prediction").fill("3")
    page.get_by_role("button", name="Reveal").click()
    assert "You said 3." in said(page) and "12.353" in said(page)
    page.keyboard.press("PageDown")  # a matrix has no field
    assert page.get_by_role("spinbutton").count() == 0 and page.locator(".now .matrix").count() == 2
    page.keyboard.press("PageDown")
    assert place(page)[0] == 3 and page.locator(".now .matrix").count() == 3
    page.get_by_role("button", name="Backward").click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".now .equation").count() == 0 and "= ?" in said(page).replace("\n", " ")
    assert page.locator(".node.receiving .cotangent > *").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.locator(".now .equation").count() == 2
    page.get_by_role("button", name="Predict").click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".now .question").count() == 0


def test_a_link_to_a_step(visit, tmp_path):
    page = visit(nested())
    address = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash === '#1'")
    page.get_by_role("button", name="Look inside").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash === '#1/2'")
    for link, expected in (
        ("#1/2", "h = tanh(z)"),
        ("#forward-2", "∂y/∂v"),
        ("#2", "y = reduce_sum(a)"),
        ("#nowhere", "y = reduce_sum(a)"),
    ):
        page.goto(address + link)
        assert expected in said(page), link
    page.goto("about:blank")
    page.goto(address + "#1/3")
    assert "h" in said(page) and page.locator(".inside b").inner_text() == "Inside layer"


# ---- large and nested -----------------------------------------------------------------------------------------------


def vanishing():
    rng = np.random.default_rng(0)
    ws = [tf.Variable(rng.normal(size=(40, 40)).astype("f") * 0.05) for _ in range(4)]
    h = tf.constant(rng.normal(size=(30, 40)).astype("f"))
    with tf.GradientTape() as tape:
        for w in ws:
            h = tf.sigmoid(h @ w)
        loss = tf.reduce_sum(h)
    return tape.play(loss, ws)


STRENGTH = """cells => Math.max(...cells.map(cell => Number(cell.style.backgroundImage.match(/[\\d.]+(?=\\))/)[0])))"""


def test_large_matrices_are_heat_maps_of_one_scale(visit):
    page = visit(vanishing())
    assert "from -" in page.locator(".now .range").first.inner_text()
    assert page.locator(".now table").first.locator("td").count() == 144
    page.keyboard.press("End")
    assert "one scale for all numbers" in said(page)
    strengths = [table.locator("td").evaluate_all(STRENGTH) for table in page.locator(".now table").all()]
    assert strengths == sorted(strengths) and strengths[0] < 0.7 * strengths[-1]  # it vanishes, and that shows
    assert page.locator(".thumb rect").count() > 4 * 144


def test_equal_numbers_have_one_shade(visit):
    x = tf.Variable([[1.0, 2.0], [4.0, 8.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * tf.constant([[2.0, 4.0], [8.0, 1.0]]))
    page = visit(tape.play(y, x))
    shades = {}
    for _ in range(place(page)[1]):
        page.keyboard.press("ArrowRight")
        for cell in page.locator(".now td").all():
            shades.setdefault(float(cell.get_attribute("title")), set()).add(cell.get_attribute("style"))
    assert {1.0, 2.0, 4.0, 8.0, 32.0} == set(shades) and all(len(found) == 1 for found in shades.values())
    assert len({*map(tuple, shades.values())}) == len(shades)


def test_complex_numbers_are_shaded_by_their_size(visit):
    x = tf.constant([3 + 4j, 5.123456j, 0j, complex(1, np.inf)], tf.complex64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.abs(x + x))
    page = visit(tape.play(y, x))
    page.keyboard.press("ArrowRight")
    cells = page.locator(".now table").first.locator("td")
    assert cells.all_inner_texts() == ["(6+8j)", "10.247j", "0j", "(2+infj)"]
    assert [cell.get_attribute("class") for cell in cells.all()] == [None, None, None, "strange"]
    strengths = [cells.nth(i).evaluate_all(STRENGTH) for i in range(3)]
    assert 0 == strengths[2] < strengths[0] < strengths[1]


@pytest.mark.parametrize("size", [2, 4, 8, 40])
def test_the_result_of_a_matrix_step_is_on_the_screen(visit, size):
    grid = np.random.default_rng(0).normal(size=(size, size)).astype("f")
    w = tf.Variable(grid)
    with tf.GradientTape() as tape:
        h = tf.constant(grid) @ w
        y = tf.reduce_sum(tf.tanh(h) * h)
    page = visit(tape.play(y, w), width=1400, height=900)
    for _ in range(place(page)[1]):
        page.keyboard.press("ArrowRight")
        window = page.locator(".now").bounding_box()
        assert window["y"] + window["height"] <= 900
        for table in page.locator(".now .matrix").all():
            box = table.bounding_box()
            assert window["y"] <= box["y"] and box["y"] + box["height"] <= window["y"] + window["height"] + 1
            assert box["x"] + box["width"] <= window["x"] + window["width"] + 1
        assert float(page.locator(".now").evaluate("x => getComputedStyle(x).fontSize.replace('px', '')")) >= 10


def nested():
    import jax
    import jax.numpy as jnp

    @jax.jit
    def layer(x):
        z = x * 2.0
        h = jnp.tanh(z)
        return h * x

    x = jnp.asarray([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = layer(x)
        y = tf.reduce_sum(a)
    return tape.play(y, x)


def test_an_operation_opens_at_a_click(visit):
    page = visit(nested())
    node = page.locator(".node.opens")
    assert node.count() == 1 and node.locator(".double rect").count() == 1
    assert node.locator(".plus").count() == 1 and "a second click shows its" in node.locator("title").text_content()
    node.click()
    assert place(page)[0] == 1 and "Look inside" in said(page)
    node.click()
    assert page.locator(".inside b").inner_text() == "Inside layer" and place(page) == (0, 8)
    page.keyboard.press("ArrowRight")
    assert "z = mul(x, 2.0)" in said(page) and "z = x * 2.0" in page.locator(".code .lit").inner_text()
    page.keyboard.press("End")
    gradient = numbers(page)
    page.get_by_role("button", name="Back", exact=False).first.click()
    assert page.locator(".inside").count() == 0 and place(page)[0] == 1
    page.keyboard.press("End")
    np.testing.assert_allclose(numbers(page), gradient, rtol=1e-5)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("o")
    assert page.locator(".inside").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".inside").count() == 0


@pytest.mark.parametrize(
    ("theme", "dark"), [('data-jp-theme-light="false"', True), ('data-jp-theme-light="true"', False)]
)
def test_a_drawing_follows_the_theme(visit, theme, dark):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x) * 2.0
    page = visit(
        f'<!DOCTYPE html><meta charset="utf-8"><body {theme}>{tape.draw(y, x)._repr_mimebundle_()[0]["text/html"]}'
    )
    shown = page.locator("img.tapejax").evaluate("image => getComputedStyle(image).filter")
    assert ("invert" in shown) == dark


# ---- beside JAX's programs ------------------------------------------------------------------------------------------


def lit(page):
    """What is lit in each listing, by its title."""
    boxes = page.locator(".listing").all()
    return [box.locator(".lit").all_inner_texts() for box in boxes]


def test_the_tape_and_jaxs_programs_step_together(visit):
    page = visit(small()[0], width=1400, height=900)
    assert page.locator(".sides").is_hidden()
    page.get_by_role("button", name="Beside JAX's programs").click()
    assert page.locator(".sides").is_visible() and page.locator(".graph").is_hidden()
    titles = [box.get_attribute("aria-label") for box in page.locator(".listing").all()]
    assert titles == ["the tape", "jaxpr, and what it keeps", "its linear part", "that transposed"]
    assert lit(page) == [["given w"], ["λ w"], ["λ dw"], []]
    page.keyboard.press("ArrowRight")
    tape, jaxpr, linear, transposed = lit(page)
    assert tape == ["h = matmul(x, w)"] and jaxpr == ["h = dot_general[…] x w"]
    assert linear == ["dh = dot_general[…] x dw"] and transposed == []
    page.get_by_role("button", name="Backward").click()
    assert lit(page) == [["target y"], [], ["return dy"], ["λ ct_y"]]
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    tape, jaxpr, linear, transposed = lit(page)
    assert tape == ["h = matmul(x, w)"] and jaxpr == [] and linear == ["dh = dot_general[…] x dw"]
    assert "dot_general" in transposed[0] and transposed[-1].startswith("ct_w = ")
    page.keyboard.press("End")
    assert lit(page)[3] == ["return ct_w"] and "The gradient" in said(page)
    page.locator(".listing").nth(1).locator("li", has_text="h = dot_general").click()
    assert "h = matmul(x, w)" in said(page)
    page.keyboard.press("j")
    assert page.locator(".sides").is_hidden() and page.locator(".graph").is_visible()


def test_a_page_may_begin_beside_jaxs_programs(visit):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.round(x)
    page = visit(tape.play(y, x, split=True), width=1400, height=900)  # the gradient is None: there is a button, too
    assert page.locator(".sides").is_visible()
    page.keyboard.press("End")
    assert lit(page)[3] == ["return 0.0 # 0.0 where the tape says None"]
    page.get_by_role("button", name="Beside JAX's programs").click()
    assert page.locator(".sides").is_hidden()


@pytest.mark.parametrize("width", [380, 800, 1400])
def test_the_programs_fit_every_window(visit, width):
    page = visit(lecture(), width=width, height=900)
    page.keyboard.press("j")
    for _ in range(place(page)[1]):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for box in page.locator(".listing").all():
            around, rows = box.bounding_box(), box.locator(".lit").all()
            assert around["height"] > 60
            if rows:
                row = rows[0].bounding_box()
                assert around["y"] <= row["y"] and row["y"] + row["height"] <= around["y"] + around["height"] + 1


def test_a_page_without_programs_has_no_button(visit):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * 2.0
    page = visit(tape.play(z, [x, y]))  # a source is computed from another
    assert page.get_by_role("button", name="Beside JAX's programs").count() == 0
    page.keyboard.press("j")
    assert page.locator(".split").count() == 0


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_a_table_of_a_tape_on_the_site(visit, scheme):
    """Neither is a column squeezed until its letters stand one below the other, nor is the table wider than the page."""
    points, weights = tf.ones([400, 20]), tf.Variable(tf.ones([20, 2]), name="network/first/kernel")
    with tf.GradientTape() as tape:
        tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=points @ weights, logits=points @ weights))
    style = (
        (ROOT / "docs" / "site" / "extra.css").read_text(encoding="utf-8").replace("STIXTwoMath-Regular.ttf", "data:,")
    )
    page = visit(
        f'<meta charset="utf-8"><style>{style}</style><body data-md-color-scheme="{scheme}"><div class="md-content md-typeset">'
        f'<div class="jupyter-wrapper" style="width:850px">{tape._repr_html_()}</div></div></body>',
        width=1400,
    )
    sizes = page.evaluate("[...document.querySelectorAll('tr')].map(row => [row.offsetWidth, row.offsetHeight])")
    assert len(sizes) > 3 and max(width for width, _ in sizes) <= 850
    line = sizes[0][1]
    assert max(height for _, height in sizes) <= 6 * line
