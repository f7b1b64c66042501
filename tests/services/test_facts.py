"""Facts are found however a person writes them, and not where only something like them stands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.services.facts import Fact, fact_of, states

AMOUNTS = """
    1,392.00 | 1.392,00 | 1392 | €1,392 | EUR 1392 | 1 392,00 | 1'392.00 | 1’392.00 | 1392.00 | 1,392 | 1.392
    1392.0 | 1\u00a0392,00 | 1\u202f392 | EUR1392 | 1392EUR | 1392 € | 1392€ | $1,392.00. | -1392 | −1,392.00
    €-1,392 | USD-1392 | (1392) | '1392' | "1392" | **1,392.00** | _1392_ | `1392` | |1392| | total:1392
    total=1392 | a,1392 | a, 1,392.00 | ~1392 | 1392.- | 1392/month | 1392 kr | 1392kr | 1392% | 1392kg
    1392, of which | Is it 1392? | 2026-02-19: 1392 | 1.392,000 | 12 of 1 392 | 5-1392-litre-no but 1392 | 1392
    1392–1400
"""
NO_AMOUNTS = """
    INV-1392 | INV1392 | INV_1392 | #1392 | v1.392 | 1392.pdf | a/1392 | 1392-A | x1392 | 1392nd | 1392B
    No-1392 | 21392 | 13920 | 1391 | 1393,00 | 1,392,000 | 13.92 | 1392.01 | 1,392.001 | 139 2 | 0.1392 | 1.3920
    1.392.001 | 2026-1392 | 10:1392 | 1392:10 | one thousand | 139200 | 1 392 000 | 1'392'000 | 1390-1392
    13-92
"""


def _items(text: str) -> list[str]:
    return [item.strip(" ") for line in text.strip().split("\n") for item in line.strip(" ").split(" | ")]


@pytest.mark.parametrize("text", _items(AMOUNTS))
def test_usual_notations_state_the_amount(text: str) -> None:
    assert states(text, Fact(kind="number", value="1392.00"))
    assert states(f"It comes to {text} in all", Fact(kind="number", value="1392"))


@pytest.mark.parametrize("text", _items(NO_AMOUNTS))
def test_ids_versions_and_other_numbers_do_not_state_the_amount(text: str) -> None:
    assert not states(text, Fact(kind="number", value="1392.00"))
    assert not states(f"See {text} there", Fact(kind="number", value="1392"))


@pytest.mark.parametrize("text", ["1.392,000", "1,392.000", "1392.000"])
def test_of_two_separators_the_last_is_the_decimal_one(text: str) -> None:
    assert states(text, Fact(kind="number", value="1392"))
    assert states(text, Fact(kind="number", value="1392000")) is (text == "1392.000")


NOTATIONS: dict[str, Callable[[Decimal], str]] = {
    "1,392.05": lambda value: f"{value:,.2f}",
    "1.392,05": lambda value: f"{value:,.2f}".translate(str.maketrans(",.", ".,")),
    "1392.05": lambda value: f"{value:.2f}",
    "1392,05": lambda value: f"{value:.2f}".replace(".", ","),
    "1 392,05": lambda value: f"{value:,.2f}".translate(str.maketrans(",.", " ,")),
    "1'392.05": lambda value: f"{value:,.2f}".replace(",", "'"),
    "€1,392.05": lambda value: f"€{value:,.2f}",
    "EUR 1.392,05": lambda value: f"EUR {value:,.2f}".translate(str.maketrans(",.", ".,")),
    "1,392.05 USD": lambda value: f"{value:,.2f} USD",
}
CENTS = st.integers(1, 10**9).map(lambda cents: Decimal(cents) / 100)


@pytest.mark.parametrize("notation", NOTATIONS)
@given(value=CENTS, place=st.integers(0, 9), step=st.integers(1, 9))
def test_a_written_amount_is_found_and_one_that_differs_by_a_digit_is_not(
    notation: str, value: Decimal, place: int, step: int
) -> None:
    digits = f"{value:.2f}"
    place = place % len(digits)
    decoy = (
        digits if digits[place] == "." else f"{digits[:place]}{(int(digits[place]) + step) % 10}{digits[place + 1 :]}"
    )
    text = f"Thanks. The total is {NOTATIONS[notation](value)}, due soon."

    assert states(text, Fact(kind="number", value=digits))
    if Decimal(decoy) != value and decoy[0] != "0":
        assert not states(text, Fact(kind="number", value=decoy))


DATES = """
    2026-02-09 | 2026-2-9 | 2026/02/09 | 9 February 2026 | 09 February 2026 | 9 February | 9th of February, 2026
    9th Feb | February 9, 2026 | February 9th 2026 | Feb 9 | Feb. 9th, 2026 | 9-Feb-2026 | 9‑Feb‑2026
    9 FEB 2026 | 9. February 2026 | 09.02.2026 | 9.2.2026 | 09/02/2026 | 02/09/2026 | 9-2-2026
    Monday, 9 Feb. at noon | 2026-02-09T10:00:00Z | (9 Feb)
"""
NO_DATES = """
    2026-02-19 | 2026-02-08 | 2025-02-09 | 12026-02-09 | 2026-02-091 | 19 February 2026 | 9 March 2026
    29 February | 9 February 2027 | 9 February, 2027 | 9 feb. 2027 | 9-Feb-2027 | Feb 9, 2025 | Feb. 9th, 2025
    February 90 | Feb 19th | 19.02.2026 | 9/3/2026 | 09/02-2026 | 9 febrile days | 2026-09-02 | 9 Feb 2027 or so
    February
"""


@pytest.mark.parametrize("text", _items(DATES))
def test_usual_notations_state_the_day(text: str) -> None:
    assert states(text, Fact(kind="date", value="2026-02-09"))
    assert states(f"on {text}, we\n met", Fact(kind="date", value="2026-02-09"))


@pytest.mark.parametrize("text", _items(NO_DATES))
def test_other_days_do_not_state_the_day(text: str) -> None:
    assert not states(text, Fact(kind="date", value="2026-02-09"))


DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%d-%b-%Y", "%d %b. %Y")


@given(day=st.dates(date(1990, 1, 1), date(2089, 12, 31)), form=st.sampled_from(DAY_FORMATS), off=st.integers(1, 800))
def test_a_written_day_is_found_and_another_one_is_not(day: date, form: str, off: int) -> None:
    text = f"It is due on {day.strftime(form)}."

    assert states(text, Fact(kind="date", value=day.isoformat()))
    for decoy in (day + timedelta(days=off), day - timedelta(days=off)):
        assert not states(text, Fact(kind="date", value=decoy.isoformat()))


@pytest.mark.parametrize(
    ("moment", "stated", "not_stated"),
    [
        (
            "14:05",
            "14:05 | 2:05 pm | 02:05PM | 2.05 p.m. | 14.05 | 14h05 | 14:05:00",
            "14:06 | 2:05 | 2:05 am | 14:055",
        ),
        ("09:00", "9:00 | 09:00 | 9 am | 9am | 9:00 AM | 9 a.m.", "9:00 pm | 9 pm | 19:00 | 9:30 am | 9:00:00 pm"),
        ("00:30", "0:30 | 00:30 | 12:30 am", "12:30 | 12:30 pm | 10:30"),
        ("12:15", "12:15 | 12:15 pm", "12:15 am | 0:15 | 2:15 pm"),
    ],
)
def test_a_time_needs_its_day_and_its_minute(moment: str, stated: str, not_stated: str) -> None:
    fact = Fact(kind="date", value=f"2026-02-09T{moment}:00Z")

    for text in stated.split(" | "):
        assert states(f"9 February at {text}", fact), text
        assert not states(f"10 February at {text}", fact), text
    for text in not_stated.split(" | "):
        assert not states(f"9 February at {text}", fact), text
    assert not states("9 February", fact)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ask HALDEN\n  Optics, please", "Halden Optics"),
        ("Halden\u00a0Optics", "Halden Optics"),
        ("Malmo\u0308 Foods", "Malmö  foods"),
        ("ﬁrst", "first"),
        ("O’Brien", "O'Brien"),
        ("Kick–off", "kick-off"),
        ("Hal\u00adden", "Halden"),
        ("STRASSE", "Straße"),
        ("_Halden Optics_ and *more*", "Halden Optics"),
        ("C++, say", "C++"),
        ("(Acme Ltd.)", "Acme Ltd."),
        ("see INV-1392.", "INV-1392"),
        ("- job_1001: done", "job_1001"),
        ("to a.b@c.example.", "a.b@c.example"),
        ("<a.b@c.example>", "A.B@c.example"),
    ],
)
def test_words_are_found_whatever_their_case_spacing_and_typography(text: str, words: str) -> None:
    assert states(text, Fact(value=words))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Haldens Optics", "Halden Optics"),
        ("Halden", "Halden Optics"),
        ("INV-13921", "INV-1392"),
        ("INV-1392-B", "INV-1392"),
        ("PRE-INV-1392", "INV-1392"),
        ("xa.b@c.example", "a.b@c.example"),
        ("x.a.b@c.example", "a.b@c.example"),
        ("a.b@c.example.org", "a.b@c.example"),
        ("anything", ""),
        ("anything", "  "),
    ],
)
def test_parts_of_other_words_are_not_found(text: str, words: str) -> None:
    assert not states(text, Fact(value=words))


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"]), min_size=1, max_size=20))
def test_every_word_states_itself(word: str) -> None:
    assert states(f"So: {word} !", Fact(value=word))


@pytest.mark.parametrize(
    ("value", "semantic", "fact"),
    [
        ("1392.00", "money", Fact(kind="number", value="1392.00")),
        ("1392.00", None, Fact(kind="text", value="1392.00")),
        (5, None, Fact(kind="number", value="5")),
        (1e21, None, Fact(kind="number", value="1000000000000000000000")),
        (True, None, Fact(kind="text", value="True")),
        ("2026-02-09", None, Fact(kind="date", value="2026-02-09")),
        ("2026-02-09T10:00:00Z", None, Fact(kind="date", value="2026-02-09T10:00:00Z")),
        ("Halden", None, Fact(kind="text", value="Halden")),
        ("some", "money", Fact(kind="text", value="some")),
    ],
)
def test_a_value_knows_what_kind_of_fact_it_is(value: object, semantic: str | None, fact: Fact) -> None:
    assert fact_of(value, semantic) == fact


@given(
    st.text(),
    st.sampled_from(["text", "number", "date"]),
    st.text() | st.sampled_from(["2026-13-45", "2026-02-09T", "NaN", "sNaN", "Infinity", "1e999999", "²"]),
)
def test_whatever_people_write_is_read_without_failing(text: str, kind: str, value: str) -> None:
    states(text, Fact.model_validate({"kind": kind, "value": value}))


@given(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda moment: moment.isoformat() + "Z"))
def test_a_timestamp_states_itself(moment: str) -> None:
    assert states(f"at {moment}", fact_of(moment))


@pytest.mark.parametrize("text", ["in progress", "In Progress", "in-progress", "**IN_PROGRESS**", "“in progress”."])
def test_words_may_be_joined_as_code_joins_them_or_not(text: str) -> None:
    assert states(f"The status is {text}", Fact(value="in_progress"))
    assert states(f"The status is {text}", Fact(value="in-progress"))
    assert states(f"The status is {text}", Fact(value="in progress"))


@pytest.mark.parametrize("text", ["inprogress", "in progressive", "login progress", "in: progress"])
def test_other_words_are_not_taken_for_joined_ones(text: str) -> None:
    assert not states(text, Fact(value="in_progress"))


@pytest.mark.parametrize("text", ["acc_1001_2", "old_acc_1001", "acc_1001-b", "acc-1001", "acc 1001"])
def test_an_id_is_no_part_of_a_longer_one_and_no_other_spelling(text: str) -> None:
    assert not states(f"It is {text}.", Fact(value="acc_1001"))
    assert states("It is _acc_1001_.", Fact(value="acc_1001"))


LISTED = "Done:\n1. The owner is Ada\n2. The rate is 20\n  3) nothing else"


@pytest.mark.parametrize(("value", "is_stated"), [("1", False), ("2", False), ("3", False), ("20", True)])
def test_the_numbers_of_a_list_are_no_amounts(value: str, is_stated: bool) -> None:
    assert states(LISTED, Fact(kind="number", value=value)) is is_stated


@pytest.mark.parametrize("text", ["42. That is all", "42", "42.", "- 42. And that is it", "1. a: 42\n2. b"])
def test_a_lone_number_at_the_beginning_of_a_line_is_an_amount(text: str) -> None:
    assert states(text, Fact(kind="number", value="42"))


def test_a_list_does_not_end_what_another_began() -> None:
    text = "1. one\n2. other\n\n1. lone"
    assert not states(text, Fact(kind="number", value="2"))


@pytest.mark.parametrize("text", ["2026-03-06T00:30:00+10:00", "2026-03-05 15:30+01:00", "2026-03-05T14:30:00.000Z"])
def test_a_moment_may_be_given_in_another_offset(text: str) -> None:
    assert states(f"It starts at {text}", Fact(kind="date", value="2026-03-05T14:30:00Z"))
    assert not states(f"It starts at {text}", Fact(kind="date", value="2026-03-05T14:31:00Z"))


@pytest.mark.parametrize("text", ["March the 5th", "2026.03.05", "2026.3.5"])
def test_further_usual_dates(text: str) -> None:
    assert states(text, Fact(kind="date", value="2026-03-05"))
    assert not states(text, Fact(kind="date", value="2026-05-03"))
