"""The catalogue speaks, and says what it lacks."""

from __future__ import annotations

import pytest

from nilometer.text.i18n import LANGUAGES, Catalogue, language


def test_says_a_sentence_with_its_parameters_in_both_languages() -> None:
    told = {lang: Catalogue(lang).say("error.unexpected.what", detail="X") for lang in LANGUAGES}
    assert told == {"en": "nilometer met a fault of its own: X", "zh": "nilometer 自身出错：X"}


def test_a_number_takes_the_form_the_sentence_names() -> None:
    assert Catalogue("en").say("screen.requests.ok", n=2610) == "2,610 ok"
    assert Catalogue("en").say("screen.off", share=None) == " (-)"


def test_a_parameter_may_be_called_key() -> None:
    with pytest.raises(KeyError, match="detail"):
        Catalogue("en").say("error.unexpected.what", key="a name that say() itself uses")


def test_what_is_missing_is_a_fault() -> None:
    words = Catalogue("zh")
    assert "screen.next" in words
    assert "screen.nothing_of_the_kind" not in words
    with pytest.raises(KeyError):
        words.say("screen.nothing_of_the_kind")


@pytest.mark.parametrize(
    ("flag", "environment", "chosen"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"NILO_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LC_ALL": "", "LC_MESSAGES": "zh_TW"}, "zh"),
        (None, {"LANG": "fr_FR"}, "en"),
        (None, {}, "en"),
    ],
)
def test_the_language_comes_from_the_flag_then_the_locale(
    flag: str | None, environment: dict[str, str], chosen: str
) -> None:
    assert language(flag, environment) == chosen
