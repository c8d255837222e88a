"""The one exception that the command line turns into a line on standard error and exit code 2; what others say, on a line."""


def one_line(told: object, most: int = 200) -> str:
    """What ``told``, an error say, says, on one line of at most ``most`` characters; its type where that is nothing."""
    return " ".join(str(told).split())[:most] or type(told).__name__


class InputError(Exception):
    """Something the user gave is wrong.

    The message is one line that names the file, line or record and says what to do about it.
    The command line prints it and exits with 2; a library caller may catch it.
    """


class RecordError(InputError):
    """One record of an input is wrong; ``--on-bad skip`` may pass over it.

    ``reason`` is the bare reason (for the record's own ``reason`` field), ``where`` names file and line, ``hint`` says
    what to do.
    """

    def __init__(self, where: str, reason: str, hint: str = "") -> None:
        self.where = where
        self.reason = reason
        self.hint = hint
        super().__init__(f"{where}: {reason}" + (f"; {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type["RecordError"], tuple[str, str, str]]:
        return RecordError, (self.where, self.reason, self.hint)  # or else pickle would give it the message alone

    def or_skip(self, how: str = "--on-bad skip") -> "RecordError":
        """The error with a word on ``how`` such records are passed over."""
        more = f"mend it, or pass over such records with {how}"
        return RecordError(self.where, self.reason, f"{self.hint}; {more}" if self.hint else more)
