"""English word lists that some kinds of negatives go by; other languages are refused where they find none of these."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _forms(text: str) -> dict[str, str]:
    return dict(item.split(":") for item in text.split())


FUNCTION_WORDS = _words(
    "a an the this that these those some any each every all both either such "
    "i me my we us our you your he him his she her it its they them their one who whom whose which what "
    "and or but nor so yet if because although though while when where since until unless as than whether "
    "of in on at by for with from to into onto over under about after before between through during against among "
    "across around behind beyond near off out up down upon within without towards toward per via "
    "am is are was were be been being have has had do does did will would shall should can could may might must "
    "there here also too very just then"
)
"""Lower case. Words of negation are not among them: what they carry is meaning."""


def is_function_word(word: str) -> bool:
    """Whether ``word``, without punctuation, is a function word; in capitals ("US", "IT") it is taken for a name."""
    return word.lower() in FUNCTION_WORDS and not (len(word) > 1 and word.isupper())


AUXILIARIES = _words("is are was were am will would shall should can could may might must")
"""Forms that "not" may follow whatever comes next."""

PERFECT = _words("has have had")
"""Auxiliaries only before a participle ("has gone"), else verbs ("has a car")."""

PARTICIPLES = _words(
    "been become begun brought built bought caught come cut done drawn fallen felt fought found given gone got grown "
    "had heard held hit hurt kept known led left lost made met paid put read risen run said seen sent set shown shut "
    "spent spoken stood struck taken taught thought told understood won worn written"
)
"""Common irregular participles; regular ones end in -ed."""

PRESENT = _words(
    "agree allow analyse apply argue ask become believe bring call claim collect combine come compare consider contain "
    "cost demonstrate deny describe design develop discuss enjoy evaluate expect explain explore extend feel find get "
    "give go hate have help hope improve include introduce invite keep know learn leave like live look love make mean "
    "need offer own pay plan play prefer present promise propose prove provide reach refuse remain remember require "
    "say see seem sell send share show speak spend start stay study suggest support take talk teach tell think train "
    "try understand use visit want win work worry write"
)
"""Common verbs in the present, as they stand after "they"."""

PAST = _forms(
    "became:become began:begin brought:bring built:build came:come did:do fell:fall felt:feel found:find gave:give "
    "got:get knew:know kept:keep left:leave lost:lose made:make met:meet paid:pay rose:rise said:say saw:see "
    "sent:send sold:sell spent:spend spoke:speak thought:think told:tell took:take went:go won:win wrote:write"
)
"""Common irregular verbs: past tense → the form after "did not"."""

NEGATIVE_WORDS = _forms(
    "nobody:somebody nothing:something nowhere:somewhere none:some cannot:can can't:can won't:will shan't:shall"
)
"""Negative words and what says the contrary."""

CLIPPED = _forms("ca:can wo:will sha:shall")
"""What is left of an auxiliary where publishers set "n't" apart ("ca n't")."""

NUMBER_WORDS = _words(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
"""Numbers in words, without "one", which is a pronoun as well."""

CALENDAR = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december"
)
"""Days and months, written with a capital."""
