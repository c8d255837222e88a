"""English word lists that some kinds of negatives go by; other languages are refused where they find none of these."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _forms(text: str) -> dict[str, str]:
    return dict(item.split(":") for item in text.split())


def _exchanges(text: str) -> dict[str, tuple[str, ...]]:
    """Phrase → the phrases it may be exchanged for: ``a/b`` goes both ways, ``a>b`` one way; ``_`` is a space."""
    table: dict[str, tuple[str, ...]] = {}
    for item in text.split():
        one, other = item.replace("_", " ").replace(">", "/").split("/")
        for was, fresh in ((one, other), (other, one))[: 1 if ">" in item else 2]:
            table[was] = (*table.get(was, ()), fresh)
    return table


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

NUMBER_WORDS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
        "nineteen twenty thirty forty fifty sixty seventy eighty ninety".split(),
        [*range(2, 21), *range(30, 100, 10)],
        strict=True,
    )
)
"""Numbers in words, without "one", which is a pronoun as well, and their values."""

CALENDAR = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december"
)
"""Days and months, written with a capital."""

CONTRARIES = _exchanges(
    # How much, how many, and which way.
    "increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell rises/falls "
    "rising/falling risen/fallen grew/shrank grows/shrinks growing/shrinking growth>decline loss>gain gained/lost "
    "losses>gains raised>lowered raise>lower raises>lowers soared/plunged went_up/went_down go_up/go_down "
    "goes_up/goes_down up_from/down_from up_by/down_by above/below higher/lower high/low highest/lowest more/less "
    "fewer>more many/few much>little the_most/the_least most_of>few_of most_people>few_people maximum/minimum "
    "majority/minority at_least/at_most more_than/less_than all>some all_the>some_of_the all_of>some_of "
    "every>hardly_any each>no some>all none_of>all_of both_of>neither_of million/billion thousands>millions "
    "hundreds>thousands half_of>all_of minor/major large/small larger/smaller largest/smallest big>small "
    "bigger/smaller biggest>smallest long/short longer/shorter longest/shortest strong/weak stronger/weaker "
    "heavy>light deep/shallow dense/sparse fast/slow faster/slower quickly/slowly wide/narrow reduce>increase "
    "reduces>increases reduced>increased reducing>increasing "
    # When.
    "before/after early/late earlier/later first>last last>first begin>end began/ended begins/ends start/stop "
    "started/stopped starts/stops beginning/end always/never never>often often/rarely usually/rarely frequently>seldom "
    "sometimes>never still>no_longer already>not_yet morning/evening day/night yesterday/tomorrow today>tomorrow "
    "tonight>tomorrow minutes/hours weeks>years months>years days>months year>month week>month last_year/next_year "
    "last_month/next_month last_week/next_week last_night>tomorrow_night daily/monthly weekly/yearly old/new "
    "older/younger oldest/youngest young>old until>after since>before soon>never "
    # Whether, and why.
    "may>will might>will could>will will>may can>cannot cannot>can must>need_not should>should_not likely/unlikely "
    "possible/impossible uncertain>certain possibly>certainly probably>certainly definitely>possibly able/unable "
    "necessary/unnecessary required/optional because>although although>because because_of/despite due_to>despite "
    "with/without caused/prevented prevents>causes prevent>cause if>unless unless>if "
    # What was done.
    "accept/reject accepted/rejected accepts/rejects accepting/rejecting agreed_to>refused_to agrees_to>refuses_to "
    "agree_to>refuse_to approve/reject approved/rejected approves/rejects allow/forbid allowed/forbidden "
    "allows/forbids permitted/prohibited opened/closed opens/closes opening/closing is_open/is_closed "
    "are_open/are_closed buy/sell bought/sold buys/sells buying/selling lend/borrow lent/borrowed arrive>leave "
    "arrived>left arrives>leaves remember/forget remembers/forgets remembered/forgot love/hate loved/hated loves/hates "
    "likes/dislikes liked/disliked oppose>support supported/opposed supports>opposes include/exclude included/excluded "
    "includes/excludes including>excluding add/remove added/removed adds/removes improve/worsen improved/worsened "
    "improves/worsens improving>worsening succeed/fail succeeded/failed succeeds/fails success/failure lose>win "
    "to_win>to_lose won/lost wins/loses winning/losing confirmed/denied confirm/deny confirms/denies admitted/denied "
    "admits/denies praise/criticise praised/criticised praises/criticises saved>wasted save>waste hired/fired "
    "hire>fire push/pull encourage/discourage encourages/discourages encouraged/discouraged outperform>underperform "
    "outperforms>underperforms outperformed>underperformed enable/prevent enables/prevents accelerate>slow "
    # What it is like, and who.
    "good/bad better/worse best/worst easy/difficult easier/harder easily>hardly simple/complex cheap/expensive "
    "hot/cold warm>cool happy/unhappy sad>happy rich/poor safe/dangerous safer>riskier public/private "
    "positive/negative local/global northern/southern north/south eastern/western east/west upper>lower inside/outside "
    "known/unknown the_same>a_different a_different>the_same similar>different different>identical true/false "
    "correct/wrong guilty/innocent alive/dead supervised/unsupervised linear/nonlinear online/offline robust/fragile "
    "efficient/inefficient effective/ineffective consistent/inconsistent significant>negligible significantly>hardly "
    "successful/unsuccessful successfully>unsuccessfully legal/illegal responsible>not_responsible fair/unfair "
    "useful/useless healthy/ill male/female man/woman men/women boy/girl boys/girls son/daughter father/mother "
    "brother/sister husband/wife he>she she>he himself/herself employer/employee customer/seller teacher/student "
    "parents/children doctor/patient"
)
"""Words and what says something else in their place: a contrary, or more or less than is said."""

IDIOMS = tuple(
    phrase.replace("_", " ")
    for phrase in (
        "a_few a_little a_lot after_all all_kinds all_over all_sorts as_far_as as_long_as as_much_as as_soon_as as_well_as "
        "at_all after, after. before, before. as_possible how_fast kind_of feel_free some_time this_way at_first at_last "
        "at_the_same_time best_practice bring_up deep_learning each_other end_to_end even_if every_day every_time far_from "
        "first_name first_of_all first_order first_place first_time free_of good_evening good_morning good_night high_school "
        "how_far "
        "how_long how_many how_much how_old if_any if_so in_short in_the_end last_name last_time left_behind less_and_less "
        "light_of long_term more_and_more more_or_less new_year new_york no_longer no_more not_always old_man once_more "
        "one_day open_source over_and_over public_school rather_than short_of since_then so_far so_long_as so_much "
        "some_day still_more the_end the_other_day the_same_as too_many too_much up_and_down what_if with_regard "
        "with_respect with_the_same year_old years_old deal_with dealt_with"
    ).split()
)
"""Phrases in which those words say nothing of their own."""

SYNONYMS = _exchanges(
    "buy/purchase bought/purchased big>large huge/enormous quickly/rapidly begin/start began/started "
    "begins/starts assist>help assists>helps assisted>helped demonstrate>show demonstrates>shows demonstrated>showed "
    "utilize>use utilizes>uses utilizing>using employing>using obtain>get obtains>gets obtained>got states>says "
    "stated>said required>needed attempt_to>try_to attempts_to>tries_to attempted_to>tried_to "
    "tries_to>attempts_to tried_to>attempted_to wishes_to>wants_to approximately>about "
    "approximately>roughly roughly>about however>nevertheless additionally>also furthermore>moreover difficult>hard "
    "simple>easy constructs>builds constructed>built suggests>proposes "
    "methods>approaches outcomes>results issues>problems firm/company firms/companies kids>children kid>child "
    "vehicle>car film/movie films/movies discusses>talks_about discussed>talked_about discuss>talk_about "
    "numerous>many entire/whole novel>new sick/ill glad>happy scared/afraid allows>lets permits>allows "
    "permitted>allowed prohibited>forbidden prohibit>forbid selects>chooses selected>chosen retains>keeps retain>keep "
    "provides>gives receives>gets received>got rose>went_up fell>went_down reduces>lowers reduced>lowered enhances>improves "
    "enhance>improve enhanced>improved surpasses>outperforms outperforms>does_better_than outperform>do_better_than "
    "recommends>advises recommended>advised perished>died assaulted>attacked cautioned>warned "
    "revealed/disclosed reveals/discloses asserted>claimed asserts>claims departed>left "
    "arrives_at>gets_to nation>country nations>countries photos>pictures photo>picture currently>now currently>at_present "
    "presently>now often/frequently seldom/rarely usually/normally almost/nearly very>extremely entirely>completely "
    "wholly>completely primary>main principal>main primarily>mainly in_order_to>to therefore>for_this_reason "
    "several>a_number_of a_number_of>several a_lot_of>many as_well_as>and_also such_as>like "
    ">might might>may cannot>can't can_not>cannot does_not>doesn't is_not>isn't are_not>aren't did_not>didn't "
    "was_not>wasn't plans_to>intends_to intends_to>plans_to requests>asks_for requested>asked_for "
    "responds>replies replied>responded speaks_to>talks_to phones>calls telephoned>called examines>looks_at "
    "investigates>looks_into consider>look_at postponed>put_off tolerate>put_up_with terminates>ends terminate>end "
    "terminated>ended modify>change modified>changed commence>begin sufficient>enough additional>more prior_to>before "
    "subsequently>later whilst>while among>amongst towards>toward regarding>about concerning>about per_year>a_year "
    "annual>yearly yearly>annual"
)
"""Phrases and what says the same; mostly in the direction of the wider word, which is safe in more places."""
