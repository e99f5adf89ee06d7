"""What is printed, as it is read."""


def plain(thing: object) -> str:
    """What something prints, in one line: tables and paragraphs are as wide as the terminal."""
    return " ".join(str(thing).split())
