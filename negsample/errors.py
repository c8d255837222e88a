"""The one exception that the command line turns into a line on standard error and exit code 2."""


class InputError(Exception):
    """Something the user gave is wrong.

    The message is one line that names the file, line or record and says what to do about it.
    The command line prints it and exits with 2; a library caller may catch it.
    """


class RecordError(InputError):
    """One record of an input is wrong; ``--on-bad skip`` may pass over it.

    ``reason`` is the bare reason (for the record's own ``reason`` field), ``where`` names file and line.
    """

    def __init__(self, where: str, reason: str, hint: str = "") -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}" + (f"; {hint}" if hint else ""))
