"""Damaged summaries: each kind of negative is one function in one file, and one line here.

A kind is called as ``make(pair, context, rng) -> Damaged`` and raises ``CannotDamage`` where the pair does not allow it
(``negsample.negatives.context`` has these types). Its labels are shares of the summary that were left alone and are
learned by mean squared error; a kind whose labels are 0 or 1 sets the attribute ``graded = False`` on the function.
"""

from negsample.registry import Registry

NEGATIVES = Registry(
    "negative",
    {
        "crosspair": "negsample.negatives.crosspair:make",
        "add": "negsample.negatives.words:add",
        "delete": "negsample.negatives.words:delete",
        "replace": "negsample.negatives.words:replace",
        "sentence-delete": "negsample.negatives.sentences:delete",
        "sentence-replace": "negsample.negatives.sentences:replace",
        "swap": "negsample.negatives.order:swap",
        "repeat": "negsample.negatives.repeat:make",
        "intrude": "negsample.negatives.intrude:make",
        "entity": "negsample.negatives.entity:make",
        "negate": "negsample.negatives.negate:make",
        "truncate": "negsample.negatives.truncate:make",
        "shuffle": "negsample.negatives.order:shuffle",
        "drop": "negsample.negatives.form:drop",
        "double": "negsample.negatives.form:double",
        "glue": "negsample.negatives.form:glue",
    },
)
